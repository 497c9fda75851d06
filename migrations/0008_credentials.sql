-- Credentials: copied keys of nodes are noticed, join tokens may be bound to a network.
SET LOCAL search_path = muster;

-- ---------------------------------------------------------------- copied keys
-- A machine never goes back to an earlier boot. Two that use one key do, in turn: each such report is a strike.
ALTER TABLE node_latest
  ADD COLUMN old_boots uuid[] NOT NULL DEFAULT '{}',    -- the boots before the present one, newest first, at most 8
  ADD COLUMN strikes   smallint NOT NULL DEFAULT 0;     -- reports of an older boot since the present one was first seen; two stop the key
GRANT SELECT (boot_id, old_boots, strikes) ON node_latest TO muster_ingest;

ALTER TABLE node
  ADD COLUMN key_stopped_at timestamptz;                -- its key was found in use by two machines; a new generation sets NULL

-- ---------------------------------------------------------------- join tokens
ALTER TABLE join_token
  ADD COLUMN cidr cidr;                                 -- only from this network; NULL = from anywhere

-- ---------------------------------------------------------------- signing in at the command line (RFC 8628)
-- A program asks, a person allows it in the console; then the program takes a session of that person, once. Before that it belongs
-- to no org.
CREATE TABLE device_code (
  device_hash bytea PRIMARY KEY CHECK (length(device_hash) = 32),   -- SHA-256 of what the program holds
  user_code   text NOT NULL UNIQUE CHECK (user_code ~ '^[b-z]{4}-[b-z]{4}$'),   -- what the person types
  client      text NOT NULL CHECK (length(client) BETWEEN 1 AND 255),           -- what the program says of itself
  address     text NOT NULL,
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'used')),
  person_id   uuid REFERENCES person ON DELETE CASCADE,             -- who decided
  person_org  uuid REFERENCES org ON DELETE CASCADE,                -- the org they worked in
  interval_seconds integer NOT NULL DEFAULT 5,                      -- between two questions of the program; grows when it asks faster
  asked_at    timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL
);
CREATE INDEX device_code_expiry ON device_code (expires_at);
GRANT SELECT, INSERT, UPDATE ON device_code TO muster_app;
GRANT SELECT, DELETE ON device_code TO muster_loop;

ALTER TABLE session
  ADD COLUMN client text NOT NULL DEFAULT '';            -- the program that it was given to; '' = a browser

-- ---------------------------------------------------------------- keys that sign a cluster's commands
-- A chain: each successor is signed by the one before, so that an agent believes it however late it hears of it. The private halves are
-- files of the servers. The first key has a row from the first rotation on.
CREATE TABLE command_key (
  org_id     uuid NOT NULL,
  cluster_id uuid NOT NULL,
  n          integer NOT NULL CHECK (n >= 1),
  public_key bytea NOT NULL CHECK (length(public_key) = 32),
  signature  bytea CHECK (length(signature) = 64),      -- by key n - 1; NULL of the first
  created_at timestamptz NOT NULL DEFAULT now(),
  retired_at timestamptz,                               -- signs no more; its file is gone
  PRIMARY KEY (org_id, cluster_id, n),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE,
  CHECK ((n = 1) = (signature IS NULL))
);
-- Nodes whose agent has not said yet that it trusts the newest key.
CREATE TABLE command_key_due (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  PRIMARY KEY (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);
ALTER TABLE cluster ADD COLUMN command_key_n integer NOT NULL DEFAULT 1;   -- which one command_public_key is
ALTER TABLE node ADD COLUMN command_key_n integer NOT NULL DEFAULT 1;      -- the newest that its agent trusts; signs its commands

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['command_key', 'command_key_due'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
END $$;
CREATE POLICY due ON command_key_due FOR SELECT TO muster_loop USING (true);
GRANT SELECT, INSERT, UPDATE ON command_key TO muster_app, muster_loop;
GRANT SELECT, INSERT, DELETE ON command_key_due TO muster_app, muster_loop;

-- ---------------------------------------------------------------- nodes that keep nothing through a boot
-- A token that lets known machines come back with a fresh key: after a person's approval (ask), or by themselves where the hardware is
-- that of the node (auto). It brings in nobody who was never there, so it may live long.
ALTER TABLE join_token ADD COLUMN rejoin text CHECK (rejoin IN ('ask', 'auto'));
CREATE TABLE rejoin (
  org_id      uuid NOT NULL,
  id          uuid NOT NULL,
  cluster_id  uuid NOT NULL,
  node_id     uuid NOT NULL,
  token_id    uuid NOT NULL,
  public_key  bytea NOT NULL CHECK (length(public_key) = 32),
  serial      text NOT NULL CHECK (length(serial) <= 255),      -- of the host, as the machine says
  address     text NOT NULL,
  serial_same boolean NOT NULL,                                 -- the node's own serial
  gpus_same   integer NOT NULL,                                 -- of the GPUs that the node had, those that the machine has
  gpus_known  integer NOT NULL,
  alive       boolean NOT NULL,                                 -- the node still reported with its present key
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'replaced')),
  decided_by  text,
  decided_at  timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE,
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
);
CREATE INDEX rejoin_node ON rejoin (org_id, node_id, id DESC);
CREATE INDEX rejoin_cluster ON rejoin (org_id, cluster_id, id DESC);
ALTER TABLE rejoin ENABLE ROW LEVEL SECURITY;
ALTER TABLE rejoin FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON rejoin TO muster_owner USING (true) WITH CHECK (true);
CREATE POLICY tenant ON rejoin TO muster_app, muster_loop USING (org_id = nullif(current_setting('muster.org', true), '')::uuid)
  WITH CHECK (org_id = nullif(current_setting('muster.org', true), '')::uuid);
CREATE POLICY scoped ON rejoin AS RESTRICTIVE FOR SELECT TO muster_app USING (
  CASE WHEN (SELECT nullif(current_setting('muster.scope', true), '') IS NULL) THEN true
       ELSE cluster_id = ANY ((SELECT nullif(current_setting('muster.scope', true), '')::uuid[])::uuid[]) END);
GRANT SELECT, INSERT, UPDATE ON rejoin TO muster_app;
-- A key's new generation numbers its events anew, also within a boot.
GRANT DELETE ON node_stream TO muster_app;

-- ---------------------------------------------------------------- links that others carry
-- A signed link downloads a part of the audit log once, without a credential.
CREATE TABLE export_link (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at    timestamptz,
  PRIMARY KEY (org_id, id)
);
ALTER TABLE export_link ENABLE ROW LEVEL SECURITY;
ALTER TABLE export_link FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON export_link TO muster_owner USING (true) WITH CHECK (true);
CREATE POLICY tenant ON export_link TO muster_app, muster_loop USING (org_id = nullif(current_setting('muster.org', true), '')::uuid)
  WITH CHECK (org_id = nullif(current_setting('muster.org', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON export_link TO muster_app;
GRANT SELECT, DELETE ON export_link TO muster_loop;
