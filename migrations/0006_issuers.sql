-- Issuers: the identity providers of an org, their keys, who signed in with them, and roles of their groups.
SET LOCAL search_path = muster;

-- Who comes by an issuer is known by (issuer, subject) and not by the name, which is for display and may be another's too.
ALTER TABLE person
  ADD COLUMN federated boolean NOT NULL DEFAULT false,
  DROP CONSTRAINT person_name_key;
CREATE UNIQUE INDEX person_local_name ON person (name) WHERE NOT federated;

CREATE TABLE issuer (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  name       text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'),
  title      text NOT NULL DEFAULT '' CHECK (length(title) <= 255),
  preset     text NOT NULL DEFAULT 'generic' CHECK (preset IN ('google', 'okta', 'auth0', 'entra', 'keycloak', 'generic')),
  url        text NOT NULL CHECK (octet_length(url) BETWEEN 9 AND 512),   -- iss, byte for byte
  config     jsonb NOT NULL,              -- the fields that judge a token and build a sign-in (docs/oidc.md)
  client_secret bytea,                    -- sealed; never read back
  sign_in    boolean NOT NULL DEFAULT true,    -- people may sign in to the console with it
  bearer     boolean NOT NULL DEFAULT false,   -- its tokens are taken by the API
  enabled    boolean NOT NULL DEFAULT true,
  not_before timestamptz,                 -- tokens issued before are refused
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name),
  UNIQUE (org_id, url)
);

-- What an issuer published, kept through restarts and its outages. A row is made with the issuer.
CREATE TABLE issuer_key_set (
  org_id       uuid NOT NULL,
  issuer_id    uuid NOT NULL,
  discovery    text NOT NULL DEFAULT '' CHECK (octet_length(discovery) <= 262144),   -- the document, as it came
  discovery_at timestamptz,
  keys         text NOT NULL DEFAULT '' CHECK (octet_length(keys) <= 1048576),       -- the set, as it came
  fetched_at   timestamptz,               -- the last time that the set was had
  expires_at   timestamptz,               -- then it is fetched again; it is used for longer
  tried_at     timestamptz,               -- the last try; whoever writes it makes it
  error        text NOT NULL DEFAULT '' CHECK (length(error) <= 1023),               -- of the last try; '' = it went well
  count        integer NOT NULL DEFAULT 0,
  unusable     jsonb NOT NULL DEFAULT '[]',                                          -- [{kid, reason}]
  version      bigint NOT NULL DEFAULT 1, -- moves with discovery and keys
  PRIMARY KEY (org_id, issuer_id),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE CASCADE
);

-- Who a token of an issuer is about. (issuer, subject) is that person for ever, also when the issuer is removed and set up anew.
CREATE TABLE person_identity (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  issuer     text NOT NULL CHECK (octet_length(issuer) BETWEEN 9 AND 512),   -- iss; of several tenants: the one's own
  subject    text NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 2048),
  issuer_id  uuid,
  person_id  uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  email      text NOT NULL DEFAULT '' CHECK (length(email) <= 320),          -- display only
  groups     text[] NOT NULL DEFAULT '{}',      -- of the newest token
  groups_at  timestamptz NOT NULL DEFAULT now(),   -- when that was issued
  not_before timestamptz,                       -- tokens issued before are refused: signed out everywhere
  created_at timestamptz NOT NULL DEFAULT now(),
  seen_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, issuer, subject),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE SET NULL (issuer_id)
);
CREATE INDEX person_identity_person ON person_identity (org_id, person_id);

-- A role of all who are in a group of an issuer, in the whole org or in a part of it.
CREATE TABLE group_grant (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,
  issuer_id  uuid NOT NULL,
  group_name text NOT NULL CHECK (octet_length(group_name) BETWEEN 1 AND 1024),   -- as it comes out of the token, prefix included
  role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'script_author', 'admin', 'auditor')),
  project_id uuid,
  cluster_id uuid,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE CASCADE,
  FOREIGN KEY (org_id, project_id) REFERENCES project (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id),
  CHECK (project_id IS NULL OR cluster_id IS NULL)
);
CREATE UNIQUE INDEX group_grant_once ON group_grant
  (org_id, issuer_id, group_name, role, coalesce(project_id, cluster_id, '00000000-0000-0000-0000-000000000000'));

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['issuer', 'issuer_key_set', 'person_identity', 'group_grant'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
  -- The keeper of keys reads the issuers of all orgs, and fetches for one at a time.
  FOREACH t IN ARRAY ARRAY['issuer', 'issuer_key_set'] LOOP
    EXECUTE format('CREATE POLICY due ON %I FOR SELECT TO muster_loop USING (true)', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON issuer, person_identity, group_grant TO muster_app;
GRANT SELECT, INSERT, UPDATE ON issuer_key_set TO muster_app;
GRANT SELECT ON issuer TO muster_loop;
GRANT SELECT, UPDATE ON issuer_key_set TO muster_loop;

-- ---------------------------------------------------------------- what a person may do
-- Each role with where it holds and where it comes from. By the groups of a token (issuer and groups given), or by those that the
-- newest token of each of the person's issuers had.
CREATE FUNCTION person_rights(org uuid, person uuid, issuer uuid, groups text[])
RETURNS TABLE (role text, project_id uuid, cluster_id uuid, via text, group_name text)
LANGUAGE sql STABLE SET search_path = muster, pg_temp AS $$
  SELECT m.role, NULL::uuid, NULL::uuid, 'person', NULL::text FROM membership m WHERE m.org_id = org AND m.person_id = person
  UNION ALL
  SELECT g.role, g.project_id, g.cluster_id, 'person', NULL FROM access_grant g WHERE g.org_id = org AND g.person_id = person
  UNION ALL
  SELECT g.role, g.project_id, g.cluster_id, 'group', g.group_name
    FROM group_grant g JOIN issuer i ON i.org_id = g.org_id AND i.id = g.issuer_id AND i.enabled
   WHERE g.org_id = org AND (g.issuer_id, g.group_name) IN (
     SELECT person_rights.issuer, unnest(person_rights.groups) WHERE person_rights.issuer IS NOT NULL
     UNION ALL
     SELECT d.issuer_id, unnest(d.groups) FROM person_identity d
      WHERE d.org_id = org AND d.person_id = person AND person_rights.issuer IS NULL)
$$;

-- The roles in the whole org, and the grants in parts of it as auth_lookup gives them: "role id parent" separated by commas.
CREATE FUNCTION person_roles(org uuid, person uuid, issuer uuid, groups text[])
RETURNS TABLE (roles text[], grants text)
LANGUAGE sql STABLE SET search_path = muster, pg_temp AS $$
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
              UNION ALL SELECT c.id::text, c.project_id::text FROM cluster c WHERE c.org_id = person_roles.org AND c.id = g.cluster_id) x)
$$;
REVOKE ALL ON FUNCTION person_rights(uuid, uuid, uuid, text[]), person_roles(uuid, uuid, uuid, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION person_rights(uuid, uuid, uuid, text[]), person_roles(uuid, uuid, uuid, text[]) TO muster_app;

-- As before, with the roles of a person's groups.
CREATE OR REPLACE FUNCTION auth_lookup(hash bytea)
RETURNS TABLE (kind text, org_id uuid, credential_id uuid, subject_id uuid, name text, roles text[], grants text, platform_admin boolean,
               node_id uuid, cluster_id uuid, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT 'agent', t.org_id, t.node_id, t.node_id, n.name, ARRAY[]::text[], NULL, false, t.node_id, n.cluster_id, t.expires_at
    FROM agent_token t
    JOIN node n ON n.org_id = t.org_id AND n.id = t.node_id AND n.removed_at IS NULL
    JOIN node_key k ON k.org_id = t.org_id AND k.node_id = t.node_id AND k.generation = t.generation AND k.revoked_at IS NULL
   WHERE t.token_hash = hash AND t.expires_at > now()
  UNION ALL
  SELECT 'session', s.org_id, s.id, p.id, p.name, r.roles, r.grants,
         p.platform_admin, NULL, NULL, least(s.expires_at, s.seen_at + interval '8 hours')
    FROM session s JOIN person p ON p.id = s.person_id AND p.disabled_at IS NULL
         CROSS JOIN LATERAL person_roles(s.org_id, s.person_id, NULL, NULL) r
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

-- As before; a group's role in an org makes one belong to it too.
CREATE OR REPLACE FUNCTION person_orgs(person uuid)
RETURNS TABLE (id uuid, name text, title text, demo boolean, created_at timestamptz, updated_at timestamptz, version bigint, roles text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT o.id, o.name, o.title, o.demo, o.created_at, o.updated_at, o.version, r.roles
    FROM org o CROSS JOIN LATERAL person_roles(o.id, person_orgs.person, NULL, NULL) r
   WHERE (r.roles <> ARRAY[]::text[] OR r.grants IS NOT NULL)
     AND o.id IN (SELECT m.org_id FROM membership m WHERE m.person_id = person_orgs.person
                  UNION ALL SELECT g.org_id FROM access_grant g WHERE g.person_id = person_orgs.person
                  UNION ALL SELECT d.org_id FROM person_identity d WHERE d.person_id = person_orgs.person)
   ORDER BY o.name
$$;
