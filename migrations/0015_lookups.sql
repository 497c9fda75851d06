-- Credentials are looked up by functions that keep their plans. One in SQL is parsed and planned anew at each call where it may not be
-- inlined (SECURITY DEFINER, SET): with row security and three kinds of credentials that takes milliseconds.
SET LOCAL search_path = muster;

CREATE OR REPLACE FUNCTION person_roles(org uuid, person uuid, issuer uuid, groups text[])
RETURNS TABLE (roles text[], grants text)
LANGUAGE plpgsql STABLE SET search_path = muster, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH rights AS MATERIALIZED (
    SELECT DISTINCT r.role, r.project_id, r.cluster_id
      FROM person_rights(person_roles.org, person_roles.person, person_roles.issuer, person_roles.groups) r
  )
  SELECT coalesce((SELECT array_agg(DISTINCT r.role ORDER BY r.role) FROM rights r
                    WHERE r.project_id IS NULL AND r.cluster_id IS NULL), ARRAY[]::text[]),
         (SELECT string_agg(g.role || ' ' || x.id || ' ' || x.parent, ',')
            FROM rights g CROSS JOIN LATERAL (
              SELECT g.project_id::text AS id, '-' AS parent WHERE g.project_id IS NOT NULL
              UNION ALL SELECT c.id::text, '-' FROM cluster c WHERE c.org_id = person_roles.org AND c.project_id = g.project_id
              UNION ALL SELECT c.id::text, c.project_id::text FROM cluster c WHERE c.org_id = person_roles.org AND c.id = g.cluster_id) x);
END $$;

-- Agents first: they ask most. A hash belongs to one credential.
CREATE OR REPLACE FUNCTION auth_lookup(hash bytea)
RETURNS TABLE (kind text, org_id uuid, credential_id uuid, subject_id uuid, name text, roles text[], grants text, platform_admin boolean,
               node_id uuid, cluster_id uuid, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = muster, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'agent', t.org_id, t.node_id, t.node_id, n.name, ARRAY[]::text[], NULL::text, false, t.node_id, n.cluster_id, t.expires_at
    FROM agent_token t
    JOIN node n ON n.org_id = t.org_id AND n.id = t.node_id AND n.removed_at IS NULL
    JOIN node_key k ON k.org_id = t.org_id AND k.node_id = t.node_id AND k.generation = t.generation AND k.revoked_at IS NULL
   WHERE t.token_hash = auth_lookup.hash AND t.expires_at > now() LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY
  SELECT 'session', s.org_id, s.id, p.id, p.name, r.roles, r.grants,
         p.platform_admin, NULL::uuid, NULL::uuid, least(s.expires_at, s.seen_at + interval '8 hours')
    FROM session s JOIN person p ON p.id = s.person_id AND p.disabled_at IS NULL
         CROSS JOIN LATERAL person_roles(s.org_id, s.person_id, NULL, NULL) r
   WHERE s.token_hash = auth_lookup.hash AND s.expires_at > now() AND s.seen_at > now() - interval '8 hours'
     AND (s.login_id IS NULL
          OR EXISTS (SELECT FROM login l JOIN issuer i ON i.org_id = l.org_id AND i.id = l.issuer_id AND i.enabled AND i.sign_in
                      WHERE l.org_id = s.login_org AND l.id = s.login_id)) LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY
  SELECT 'service', t.org_id, t.id, t.id, t.name, CASE WHEN t.cluster_id IS NULL THEN ARRAY[t.role] ELSE ARRAY[]::text[] END,
         (SELECT t.role || ' ' || c.id || ' ' || c.project_id FROM cluster c WHERE c.org_id = t.org_id AND c.id = t.cluster_id),
         t.platform_admin, NULL::uuid, NULL::uuid,
         least(coalesce(t.expires_at, 'infinity'), CASE WHEN t.token_hash = auth_lookup.hash THEN 'infinity' ELSE t.previous_until END)
    FROM service_token t
   WHERE (t.token_hash = auth_lookup.hash OR t.previous_hash = auth_lookup.hash AND t.previous_until > now())
     AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()) LIMIT 1;
END $$;

-- What a joining fleet calls once or twice a node.
CREATE OR REPLACE FUNCTION join_lookup(hash bytea) RETURNS TABLE (org_id uuid, cluster_id uuid, token_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = muster, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT t.org_id, t.cluster_id, t.id FROM join_token t
   WHERE t.token_hash = join_lookup.hash AND t.revoked_at IS NULL AND t.expires_at > now() LIMIT 1;
END $$;

CREATE OR REPLACE FUNCTION node_key_lookup(node uuid) RETURNS TABLE (org_id uuid, generation integer, public_key bytea)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = muster, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT k.org_id, k.generation, k.public_key FROM node_key k
    JOIN node n ON n.org_id = k.org_id AND n.id = k.node_id AND n.removed_at IS NULL
   WHERE k.node_id = node_key_lookup.node AND k.revoked_at IS NULL ORDER BY k.generation DESC LIMIT 1;
END $$;
