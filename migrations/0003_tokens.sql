-- Service tokens: last use, rotation with an overlap, and names that are free again after a revocation.
SET LOCAL search_path = muster;

ALTER TABLE service_token
  ADD COLUMN last_used_at   timestamptz,   -- written at most every five minutes
  ADD COLUMN rotated_at     timestamptz,
  ADD COLUMN previous_hash  bytea,         -- the secret before the last rotation
  ADD COLUMN previous_until timestamptz,   -- how long it still works
  DROP CONSTRAINT service_token_org_id_name_key;
CREATE UNIQUE INDEX service_token_name ON service_token (org_id, name) WHERE revoked_at IS NULL;
CREATE INDEX service_token_previous ON service_token (previous_hash) WHERE previous_hash IS NOT NULL;

-- As before, but a rotated token's former secret is found while it may still be used.
CREATE OR REPLACE FUNCTION auth_lookup(hash bytea)
RETURNS TABLE (kind text, org_id uuid, credential_id uuid, subject_id uuid, name text, roles text[], platform_admin boolean,
               node_id uuid, cluster_id uuid, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT 'agent', t.org_id, t.node_id, t.node_id, n.name, ARRAY[]::text[], false, t.node_id, n.cluster_id, t.expires_at
    FROM agent_token t
    JOIN node n ON n.org_id = t.org_id AND n.id = t.node_id AND n.removed_at IS NULL
    JOIN node_key k ON k.org_id = t.org_id AND k.node_id = t.node_id AND k.generation = t.generation AND k.revoked_at IS NULL
   WHERE t.token_hash = hash AND t.expires_at > now()
  UNION ALL
  SELECT 'session', s.org_id, s.id, p.id, p.name,
         coalesce((SELECT array_agg(m.role ORDER BY m.role) FROM membership m WHERE m.org_id = s.org_id AND m.person_id = s.person_id), ARRAY[]::text[]),
         p.platform_admin, NULL, NULL, least(s.expires_at, s.seen_at + interval '8 hours')
    FROM session s JOIN person p ON p.id = s.person_id AND p.disabled_at IS NULL
   WHERE s.token_hash = hash AND s.expires_at > now() AND s.seen_at > now() - interval '8 hours'
  UNION ALL
  SELECT 'service', t.org_id, t.id, t.id, t.name, ARRAY[t.role], t.platform_admin, NULL, NULL, coalesce(t.expires_at, 'infinity')
    FROM service_token t
   WHERE t.token_hash = hash AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
  UNION ALL
  SELECT 'service', t.org_id, t.id, t.id, t.name, ARRAY[t.role], t.platform_admin, NULL, NULL, least(t.expires_at, t.previous_until)
    FROM service_token t
   WHERE t.previous_hash = hash AND t.previous_until > now() AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
  LIMIT 1
$$;
