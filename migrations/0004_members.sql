-- Members: roles in an org, in one of its projects or in a single cluster; who has only the latter sees only that.
SET LOCAL search_path = muster;

ALTER TABLE membership
  ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN created_by text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX membership_id ON membership (org_id, id);

-- A role in a part of an org: a project with its clusters, or one cluster.
CREATE TABLE access_grant (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  person_id  uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'script_author', 'admin', 'auditor')),
  project_id uuid,
  cluster_id uuid,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, project_id) REFERENCES project (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id),
  CHECK ((project_id IS NULL) <> (cluster_id IS NULL))
);
CREATE UNIQUE INDEX access_grant_once ON access_grant (org_id, person_id, role, coalesce(project_id, cluster_id));
ALTER TABLE access_grant ENABLE ROW LEVEL SECURITY;
ALTER TABLE access_grant FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON access_grant TO muster_owner USING (true) WITH CHECK (true);
CREATE POLICY tenant ON access_grant TO muster_app, muster_loop
  USING (org_id = nullif(current_setting('muster.org', true), '')::uuid) WITH CHECK (org_id = nullif(current_setting('muster.org', true), '')::uuid);
-- UPDATE is what FOR UPDATE asks for.
GRANT SELECT, INSERT, UPDATE, DELETE ON access_grant TO muster_app;

ALTER TABLE service_token
  ADD COLUMN cluster_id uuid,             -- the only cluster it is for; NULL = the whole org
  ADD FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id);

-- ---------------------------------------------------------------- what a part of an org sees
-- muster.scope lists the clusters and projects that a statement may read, '' or unset = all of the org. CASE, because a planner
-- takes it for half of the rows; with OR it expects next to none and turns from the indexes that lists are ordered by.
DO $$
DECLARE t text; col text;
BEGIN
  FOREACH t IN ARRAY ARRAY['project', 'cluster', 'node', 'incident', 'repair', 'event', 'join_token', 'cluster_rollup', 'cluster_history',
      'node_transition', 'state_anchor'] LOOP
    col := CASE WHEN t IN ('project', 'cluster') THEN 'id' ELSE 'cluster_id' END;
    EXECUTE format('CREATE POLICY scoped ON %I AS RESTRICTIVE FOR SELECT TO muster_app USING (
      CASE WHEN (SELECT nullif(current_setting(''muster.scope'', true), '''') IS NULL) THEN true
           ELSE %I = ANY ((SELECT nullif(current_setting(''muster.scope'', true), '''')::uuid[])::uuid[]) END)', t, col);
  END LOOP;
END $$;
-- A part has no cluster of its own; its node has.
CREATE POLICY scoped ON device AS RESTRICTIVE FOR SELECT TO muster_app USING (
  CASE WHEN (SELECT nullif(current_setting('muster.scope', true), '') IS NULL) THEN true
       ELSE EXISTS (SELECT FROM node n WHERE n.org_id = device.org_id AND n.id = device.node_id) END);

-- ---------------------------------------------------------------- credentials, with their grants
-- grants: "role id parent" separated by commas. Of a project's grant there is one entry for the project (parent -) and one for each
-- of its clusters (parent -); of a cluster's one, whose parent is its project: that may be seen, no more.
DROP FUNCTION auth_lookup(bytea);
CREATE FUNCTION auth_lookup(hash bytea)
RETURNS TABLE (kind text, org_id uuid, credential_id uuid, subject_id uuid, name text, roles text[], grants text, platform_admin boolean,
               node_id uuid, cluster_id uuid, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT 'agent', t.org_id, t.node_id, t.node_id, n.name, ARRAY[]::text[], NULL, false, t.node_id, n.cluster_id, t.expires_at
    FROM agent_token t
    JOIN node n ON n.org_id = t.org_id AND n.id = t.node_id AND n.removed_at IS NULL
    JOIN node_key k ON k.org_id = t.org_id AND k.node_id = t.node_id AND k.generation = t.generation AND k.revoked_at IS NULL
   WHERE t.token_hash = hash AND t.expires_at > now()
  UNION ALL
  SELECT 'session', s.org_id, s.id, p.id, p.name,
         coalesce((SELECT array_agg(m.role ORDER BY m.role) FROM membership m WHERE m.org_id = s.org_id AND m.person_id = s.person_id), ARRAY[]::text[]),
         (SELECT string_agg(g.role || ' ' || x.id || ' ' || x.parent, ',')
            FROM access_grant g CROSS JOIN LATERAL (
              SELECT g.project_id::text AS id, '-' AS parent WHERE g.project_id IS NOT NULL
              UNION ALL SELECT c.id::text, '-' FROM cluster c WHERE c.org_id = g.org_id AND c.project_id = g.project_id
              UNION ALL SELECT c.id::text, c.project_id::text FROM cluster c WHERE c.org_id = g.org_id AND c.id = g.cluster_id) x
           WHERE g.org_id = s.org_id AND g.person_id = s.person_id),
         p.platform_admin, NULL, NULL, least(s.expires_at, s.seen_at + interval '8 hours')
    FROM session s JOIN person p ON p.id = s.person_id AND p.disabled_at IS NULL
   WHERE s.token_hash = hash AND s.expires_at > now() AND s.seen_at > now() - interval '8 hours'
  UNION ALL
  SELECT 'service', t.org_id, t.id, t.id, t.name, CASE WHEN t.cluster_id IS NULL THEN ARRAY[t.role] ELSE ARRAY[]::text[] END,
         (SELECT t.role || ' ' || c.id || ' ' || c.project_id FROM cluster c WHERE c.org_id = t.org_id AND c.id = t.cluster_id),
         t.platform_admin, NULL, NULL,
         least(coalesce(t.expires_at, 'infinity'), CASE WHEN t.token_hash = hash THEN 'infinity' ELSE t.previous_until END)
    FROM service_token t
   WHERE (t.token_hash = hash OR t.previous_hash = hash AND t.previous_until > now())
     AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
  LIMIT 1
$$;
REVOKE ALL ON FUNCTION auth_lookup(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(bytea) TO muster_app;

-- As before; a grant in a part of an org makes one belong to it too, without a role in the whole.
CREATE OR REPLACE FUNCTION person_orgs(person uuid)
RETURNS TABLE (id uuid, name text, title text, demo boolean, created_at timestamptz, updated_at timestamptz, version bigint, roles text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT o.id, o.name, o.title, o.demo, o.created_at, o.updated_at, o.version,
         coalesce((SELECT array_agg(m.role ORDER BY m.role) FROM membership m WHERE m.org_id = o.id AND m.person_id = person), ARRAY[]::text[])
    FROM org o WHERE EXISTS (SELECT FROM membership m WHERE m.org_id = o.id AND m.person_id = person)
                  OR EXISTS (SELECT FROM access_grant g WHERE g.org_id = o.id AND g.person_id = person)
   ORDER BY o.name
$$;

-- Ends all sessions of a person, in every org, each with a row in that org's audit log. Returns how many.
CREATE FUNCTION sessions_end(person uuid, body text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE ended integer; o uuid;
BEGIN
  FOR o IN SELECT DISTINCT s.org_id FROM session s WHERE s.person_id = person ORDER BY s.org_id LOOP
    INSERT INTO audit (org_id, body) VALUES (o, sessions_end.body);
  END LOOP;
  DELETE FROM session s WHERE s.person_id = person;
  GET DIAGNOSTICS ended = ROW_COUNT;
  UPDATE installation SET auth_epoch = auth_epoch + 1;
  RETURN ended;
END $$;
REVOKE ALL ON FUNCTION sessions_end(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sessions_end(uuid, text) TO muster_app;
