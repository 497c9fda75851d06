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

-- ---------------------------------------------------------------- row security
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['org_key'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
END $$;
