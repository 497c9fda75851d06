-- Secrets at rest and logins: keys of orgs, tries to sign in, and what a session knows of its issuer.
SET LOCAL search_path = muster;

-- ---------------------------------------------------------------- keys of orgs
-- Which master key wraps; the key itself is a file of the servers. Changed by `musterd key rotate-master` only.
CREATE TABLE secret_master (
  one        boolean PRIMARY KEY DEFAULT true CHECK (one),
  key_id     bytea NOT NULL CHECK (length(key_id) = 8),
  changed_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT (key_id) ON secret_master TO muster_app, muster_loop;
-- FOR SHARE asks for a column that may be changed; this one means nothing.
GRANT UPDATE (changed_at) ON secret_master TO muster_app, muster_loop;

CREATE TABLE org_key (
  org_id       uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  version      integer NOT NULL CHECK (version > 0),
  master       bytea NOT NULL CHECK (length(master) = 8),   -- which master key wraps it
  wrapped      bytea NOT NULL CHECK (length(wrapped) = 60),
  created_at   timestamptz NOT NULL DEFAULT now(),
  rewrapped_at timestamptz,
  PRIMARY KEY (org_id, version)
);
GRANT SELECT, INSERT ON org_key TO muster_app, muster_loop;

-- ---------------------------------------------------------------- logins
-- A try to sign in at an issuer: hashes only, taken once by the browser that began it.
CREATE TABLE login_attempt (
  org_id       uuid NOT NULL,
  id           uuid NOT NULL,
  issuer_id    uuid NOT NULL,
  state_hash   bytea NOT NULL CHECK (length(state_hash) = 32),
  browser_hash bytea NOT NULL CHECK (length(browser_hash) = 32),
  return_to    text NOT NULL CHECK (length(return_to) BETWEEN 1 AND 1024),
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE CASCADE
);
CREATE INDEX login_attempt_state ON login_attempt (state_hash);

-- What sessions stand on that began at an issuer: when it goes, they end, in whatever org they are by then.
CREATE TABLE login (
  org_id        uuid NOT NULL,
  id            uuid NOT NULL,
  issuer_id     uuid NOT NULL,
  person_id     uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  issuer        text NOT NULL,            -- iss; with the subject the key of person_identity
  subject       text NOT NULL,
  sid           text,                     -- the issuer's name of its session
  id_token      bytea,                    -- sealed; the hint of a logout
  refresh_token bytea,                    -- sealed
  refresh_at    timestamptz,              -- when it is due; NULL = there is nothing to refresh with
  tries         integer NOT NULL DEFAULT 0,   -- of the refresh that is due
  created_at    timestamptz NOT NULL DEFAULT now(),
  refreshed_at  timestamptz,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE CASCADE
);
CREATE INDEX login_person ON login (org_id, person_id);
CREATE INDEX login_subject ON login (org_id, issuer_id, subject);
CREATE INDEX login_due ON login (org_id, refresh_at) WHERE refresh_at IS NOT NULL;

-- Logout tokens that were used, until they would have expired.
CREATE TABLE logout_token (
  org_id     uuid NOT NULL,
  issuer_id  uuid NOT NULL,
  jti_hash   bytea NOT NULL CHECK (length(jti_hash) = 32),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, issuer_id, jti_hash),
  FOREIGN KEY (org_id, issuer_id) REFERENCES issuer (org_id, id) ON DELETE CASCADE
);

ALTER TABLE session
  ADD COLUMN login_org  uuid,             -- the org of its login; NULL with login_id = a one-time link
  ADD COLUMN login_id   uuid,
  ADD COLUMN address    text NOT NULL DEFAULT '' CHECK (length(address) <= 64),
  ADD COLUMN user_agent text NOT NULL DEFAULT '' CHECK (length(user_agent) <= 255),
  ADD CHECK ((login_org IS NULL) = (login_id IS NULL));
CREATE INDEX session_login ON session (login_org, login_id) WHERE login_id IS NOT NULL;
CREATE INDEX session_person ON session (person_id);

-- ---------------------------------------------------------------- found before the org is known
CREATE FUNCTION issuer_org(issuer uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT i.org_id FROM issuer i WHERE i.id = issuer_org.issuer LIMIT 1
$$;
CREATE INDEX issuer_id ON issuer (id);

-- Takes a try, once: only with the secret of the browser that began it, so that nobody else can use it up.
CREATE FUNCTION login_attempt_take(state_hash bytea, browser_hash bytea) RETURNS TABLE (org_id uuid, issuer_id uuid, return_to text)
LANGUAGE sql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  DELETE FROM login_attempt a
   WHERE a.state_hash = login_attempt_take.state_hash AND a.browser_hash = login_attempt_take.browser_hash AND a.expires_at > now()
   RETURNING a.org_id, a.issuer_id, a.return_to
$$;

-- What the sign-in page offers: the issuers of the org with this name; without a name those of the only org that has any.
CREATE FUNCTION sign_in_options(org_name text) RETURNS TABLE (issuer_id uuid, title text, preset text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  WITH offered AS (
    SELECT i.org_id, i.id, CASE WHEN i.title = '' THEN i.name ELSE i.title END AS title, i.preset
      FROM issuer i JOIN org o ON o.id = i.org_id
     WHERE i.enabled AND i.sign_in AND (org_name IS NULL OR o.name = org_name)
  )
  SELECT o.id, o.title, o.preset FROM offered o
   WHERE org_name IS NOT NULL OR (SELECT count(DISTINCT f.org_id) FROM offered f) = 1
   ORDER BY o.title, o.id LIMIT 50
$$;

-- ---------------------------------------------------------------- ends
-- Ends logins of an org and the sessions that stand on them in any org, each org with a row in its audit log: one login, or those
-- of an issuer with this sid (when given), else all of the subject. Returns how many sessions ended.
CREATE FUNCTION logins_end(org uuid, login uuid, issuer uuid, sid text, subject text, body text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE ended integer := 0; found uuid[]; o uuid;
BEGIN
  SELECT coalesce(array_agg(l.id), '{}') INTO found FROM login l
   WHERE l.org_id = logins_end.org
     AND CASE WHEN logins_end.login IS NOT NULL THEN l.id = logins_end.login
              ELSE l.issuer_id = logins_end.issuer
                   AND CASE WHEN logins_end.sid IS NOT NULL
                            THEN l.sid = logins_end.sid AND (logins_end.subject IS NULL OR l.subject = logins_end.subject)
                            ELSE l.subject = logins_end.subject END END;
  IF found = '{}' THEN RETURN 0; END IF;
  FOR o IN SELECT DISTINCT s.org_id FROM session s WHERE s.login_org = logins_end.org AND s.login_id = ANY (found) ORDER BY s.org_id LOOP
    INSERT INTO audit (org_id, body) VALUES (o, logins_end.body);
  END LOOP;
  DELETE FROM session s WHERE s.login_org = logins_end.org AND s.login_id = ANY (found);
  GET DIAGNOSTICS ended = ROW_COUNT;
  DELETE FROM login l WHERE l.org_id = logins_end.org AND l.id = ANY (found);
  UPDATE installation SET auth_epoch = auth_epoch + 1;
  RETURN ended;
END $$;

-- As before; the logins go too, and tokens that were issued until now are refused as bearers.
CREATE OR REPLACE FUNCTION sessions_end(person uuid, body text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE ended integer; o uuid;
BEGIN
  FOR o IN SELECT DISTINCT s.org_id FROM session s WHERE s.person_id = person ORDER BY s.org_id LOOP
    INSERT INTO audit (org_id, body) VALUES (o, sessions_end.body);
  END LOOP;
  DELETE FROM session s WHERE s.person_id = person;
  GET DIAGNOSTICS ended = ROW_COUNT;
  DELETE FROM login l WHERE l.person_id = person;
  UPDATE person_identity d SET not_before = now() WHERE d.person_id = person;
  UPDATE installation SET auth_epoch = auth_epoch + 1;
  RETURN ended;
END $$;

-- A person's sessions in all orgs, and the end of one of them.
CREATE FUNCTION person_sessions(person uuid)
RETURNS TABLE (id uuid, org_id uuid, org_name text, created_at timestamptz, seen_at timestamptz, expires_at timestamptz, address text,
               user_agent text, issuer_id uuid, issuer_title text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT s.id, o.id, o.name, s.created_at, s.seen_at, least(s.expires_at, s.seen_at + interval '8 hours'), s.address, s.user_agent,
         i.id, CASE WHEN i.title = '' THEN i.name ELSE i.title END
    FROM session s JOIN org o ON o.id = s.org_id
    LEFT JOIN login l ON l.org_id = s.login_org AND l.id = s.login_id
    LEFT JOIN issuer i ON i.org_id = l.org_id AND i.id = l.issuer_id
   WHERE s.person_id = person AND s.expires_at > now() AND s.seen_at > now() - interval '8 hours' AND (s.login_id IS NULL OR l.id IS NOT NULL)
   ORDER BY s.seen_at DESC, s.id LIMIT 200
$$;
CREATE FUNCTION session_end(person uuid, session uuid, body text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE o uuid;
BEGIN
  DELETE FROM session s WHERE s.person_id = session_end.person AND s.id = session_end.session RETURNING s.org_id INTO o;
  IF o IS NULL THEN RETURN false; END IF;
  INSERT INTO audit (org_id, body) VALUES (o, session_end.body);
  UPDATE installation SET auth_epoch = auth_epoch + 1;
  RETURN true;
END $$;

REVOKE ALL ON FUNCTION issuer_org(uuid), login_attempt_take(bytea, bytea), sign_in_options(text),
  logins_end(uuid, uuid, uuid, text, text, text), person_sessions(uuid), session_end(uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION issuer_org(uuid), login_attempt_take(bytea, bytea), sign_in_options(text),
  logins_end(uuid, uuid, uuid, text, text, text), person_sessions(uuid), session_end(uuid, uuid, text) TO muster_app;

-- As before; a session that began at an issuer lives as long as its login, and while people may sign in there.
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
     AND (s.login_id IS NULL
          OR EXISTS (SELECT FROM login l JOIN issuer i ON i.org_id = l.org_id AND i.id = l.issuer_id AND i.enabled AND i.sign_in
                      WHERE l.org_id = s.login_org AND l.id = s.login_id))
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

-- ---------------------------------------------------------------- row security
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['org_key', 'login_attempt', 'login', 'logout_token'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON login, logout_token TO muster_app;
GRANT SELECT, INSERT ON login_attempt TO muster_app;
GRANT SELECT, DELETE ON login_attempt, logout_token, login TO muster_loop;
GRANT UPDATE (refresh_at, tries) ON login TO muster_loop;
