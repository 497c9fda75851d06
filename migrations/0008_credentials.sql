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
