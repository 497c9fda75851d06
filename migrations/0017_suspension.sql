-- Suspended organizations: their people, tokens and new nodes are refused, and nothing begins there; what runs is still seen.
SET LOCAL search_path = muster;

ALTER TABLE org
  ADD COLUMN suspended_at   timestamptz,          -- NULL = not suspended
  ADD COLUMN suspended_by   text NOT NULL DEFAULT '',
  ADD COLUMN suspend_reason text NOT NULL DEFAULT '' CHECK (length(suspend_reason) <= 1000),
  ADD COLUMN resumed_at     timestamptz;          -- the end of the last suspension: repairs that waited until then need a person

-- As before, and why the org is suspended, NULL = it is not; of agents nobody asks, they go on.
DROP FUNCTION auth_lookup(bytea);
CREATE FUNCTION auth_lookup(hash bytea)
RETURNS TABLE (kind text, org_id uuid, credential_id uuid, subject_id uuid, name text, roles text[], grants text, platform_admin boolean,
               node_id uuid, cluster_id uuid, expires_at timestamptz, suspended text)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = muster, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'agent', t.org_id, t.node_id, t.node_id, n.name, ARRAY[]::text[], NULL::text, false, t.node_id, n.cluster_id, t.expires_at, NULL::text
    FROM agent_token t
    JOIN node n ON n.org_id = t.org_id AND n.id = t.node_id AND n.removed_at IS NULL
    JOIN node_key k ON k.org_id = t.org_id AND k.node_id = t.node_id AND k.generation = t.generation AND k.revoked_at IS NULL
   WHERE t.token_hash = auth_lookup.hash AND t.expires_at > now() LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY
  SELECT 'session', s.org_id, s.id, p.id, p.name, r.roles, r.grants,
         p.platform_admin, NULL::uuid, NULL::uuid, least(s.expires_at, s.seen_at + interval '8 hours'),
         (SELECT o.suspend_reason FROM org o WHERE o.id = s.org_id AND o.suspended_at IS NOT NULL)
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
         least(coalesce(t.expires_at, 'infinity'), CASE WHEN t.token_hash = auth_lookup.hash THEN 'infinity' ELSE t.previous_until END),
         (SELECT o.suspend_reason FROM org o WHERE o.id = t.org_id AND o.suspended_at IS NOT NULL)
    FROM service_token t
   WHERE (t.token_hash = auth_lookup.hash OR t.previous_hash = auth_lookup.hash AND t.previous_until > now())
     AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()) LIMIT 1;
END $$;
REVOKE ALL ON FUNCTION auth_lookup(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(bytea) TO muster_app;

-- All orgs by name, as platform administrators see them: those after a name, or the one with this id.
CREATE FUNCTION platform_orgs(after text, one uuid, size integer)
RETURNS TABLE (id uuid, name text, title text, demo boolean, created_at timestamptz, updated_at timestamptz, version bigint,
               suspended_at timestamptz, suspended_by text, suspend_reason text, members bigint, clusters bigint, nodes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT o.id, o.name, o.title, o.demo, o.created_at, o.updated_at, o.version, o.suspended_at,
         CASE WHEN o.suspended_at IS NOT NULL THEN o.suspended_by END, CASE WHEN o.suspended_at IS NOT NULL THEN o.suspend_reason END,
         (SELECT count(*) FROM (SELECT m.person_id FROM membership m WHERE m.org_id = o.id
                                UNION SELECT g.person_id FROM access_grant g WHERE g.org_id = o.id
                                UNION SELECT d.person_id FROM person_identity d WHERE d.org_id = o.id) p),
         (SELECT count(*) FROM cluster c WHERE c.org_id = o.id),
         (SELECT count(*) FROM node n WHERE n.org_id = o.id AND n.removed_at IS NULL)
    FROM org o WHERE (platform_orgs.after IS NULL OR o.name > platform_orgs.after) AND (platform_orgs.one IS NULL OR o.id = platform_orgs.one)
   ORDER BY o.name LIMIT platform_orgs.size
$$;
REVOKE ALL ON FUNCTION platform_orgs(text, uuid, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION platform_orgs(text, uuid, integer) TO muster_app;
