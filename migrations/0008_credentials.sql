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
