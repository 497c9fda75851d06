-- The foundation: tenancy, inventory, health, repairs, credentials, audit.
-- Rules that every table keeps (DESIGN: docs/ARCHITECTURE.md, tenancy): org_id leads every key; row security is
-- enabled and forced; states are text + CHECK; grants are by name and never to a partition.
CREATE SCHEMA muster;
SET LOCAL search_path = muster;
GRANT USAGE ON SCHEMA muster TO muster_app, muster_ingest, muster_loop, muster_backup;

-- ---------------------------------------------------------------- installation and people (no org)
CREATE TABLE installation (
  one                boolean PRIMARY KEY DEFAULT true CHECK (one),
  id                 uuid NOT NULL DEFAULT gen_random_uuid(),
  restore_generation integer NOT NULL DEFAULT 1,   -- raised by `musterd migrate --after-restore`; leads every command epoch
  auth_epoch         bigint NOT NULL DEFAULT 1,    -- raised by each revocation; servers poll it and drop cached credentials
  created_at         timestamptz NOT NULL DEFAULT now()
);
INSERT INTO installation DEFAULT VALUES;

CREATE TABLE person (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 255),
  platform_admin boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  disabled_at timestamptz
);

CREATE TABLE sign_in_link (
  token_hash bytea PRIMARY KEY,
  person_id  uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  expires_at timestamptz NOT NULL,
  used_at    timestamptz
);

-- ---------------------------------------------------------------- tenancy
CREATE TABLE org (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE CHECK (name ~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'),
  title      text NOT NULL DEFAULT '' CHECK (length(title) <= 255),
  demo       boolean NOT NULL DEFAULT false,       -- a demo org never sends a command to a machine
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1
);

-- One row an org, locked late in a transaction: the event counter, short numbers and roll-up version.
CREATE TABLE org_head (
  org_id         uuid PRIMARY KEY REFERENCES org ON DELETE CASCADE,
  event_seq      bigint NOT NULL DEFAULT 0,
  last_no        bigint NOT NULL DEFAULT 0,        -- short numbers of incidents and repairs
  rollup_version bigint NOT NULL DEFAULT 0,
  command_seq    bigint NOT NULL DEFAULT 0         -- moves when a command becomes ready or is withdrawn
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE membership (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  person_id  uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'script_author', 'admin', 'auditor')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, person_id, role)
);

CREATE TABLE session (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,   -- the org the person works in now
  id         uuid NOT NULL,
  token_hash bytea NOT NULL,
  person_id  uuid NOT NULL REFERENCES person ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, id)
);
CREATE INDEX session_token ON session (token_hash);

CREATE TABLE service_token (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
  role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'script_author', 'admin', 'auditor')),
  platform_admin boolean NOT NULL DEFAULT false,
  token_hash bytea NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name)
);
CREATE INDEX service_token_hash ON service_token (token_hash);

CREATE TABLE project (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  name       text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'),
  title      text NOT NULL DEFAULT '' CHECK (length(title) <= 255),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name)
);

CREATE TABLE cluster (
  org_id          uuid NOT NULL,
  id              uuid NOT NULL,
  project_id      uuid NOT NULL,
  name            text NOT NULL CHECK (name ~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'),
  scheduler       text NOT NULL DEFAULT 'none' CHECK (scheduler IN ('slurm', 'kubernetes', 'none')),
  region          text NOT NULL DEFAULT '' CHECK (length(region) <= 255),
  gpu_type        text NOT NULL DEFAULT '' CHECK (length(gpu_type) <= 255),
  gpus_per_node   integer CHECK (gpus_per_node BETWEEN 0 AND 64),
  driver_version  text NOT NULL DEFAULT '' CHECK (length(driver_version) <= 255),   -- wanted; nodes that differ show as drift
  network         text NOT NULL DEFAULT '' CHECK (length(network) <= 255),
  os_image        text NOT NULL DEFAULT '' CHECK (length(os_image) <= 255),
  billing_rate    numeric(12,4) CHECK (billing_rate >= 0),                          -- per GPU-hour
  billing_currency text NOT NULL DEFAULT 'USD' CHECK (billing_currency ~ '^[A-Z]{3}$'),
  command_public_key bytea CHECK (length(command_public_key) = 32),                 -- Ed25519; the private key is a file outside the database
  healthy_delay_seconds integer NOT NULL DEFAULT 600 CHECK (healthy_delay_seconds BETWEEN 0 AND 86400),   -- quiet time that proves a repair
  begin_within_seconds  integer NOT NULL DEFAULT 1800 CHECK (begin_within_seconds BETWEEN 1 AND 86400),   -- an approval must begin within
  rejoin_within_seconds integer NOT NULL DEFAULT 1800 CHECK (rejoin_within_seconds BETWEEN 1 AND 86400),  -- a node must be back within
  next_slot       integer NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  version         bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name),
  FOREIGN KEY (org_id, project_id) REFERENCES project (org_id, id)
);

-- ---------------------------------------------------------------- inventory
CREATE TABLE node (
  org_id        uuid NOT NULL,
  id            uuid NOT NULL,
  cluster_id    uuid NOT NULL,
  name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 253),
  slot          integer NOT NULL,                 -- place in the arrays of cluster_history
  state         text NOT NULL DEFAULT 'pending'
                CHECK (state IN ('pending', 'starting', 'healthy', 'unhealthy', 'repairing', 'paused', 'unknown')),
  reason        text NOT NULL DEFAULT '',         -- why it is in this state, one sentence
  state_since   timestamptz NOT NULL DEFAULT now(),
  warning       boolean NOT NULL DEFAULT false,   -- an open incident that is no node fault
  schedulable   boolean NOT NULL DEFAULT true,
  cordoned_by   uuid,                             -- the repair that took it out of scheduling; a person's cordon or uncordon sets NULL
  auto_repair   boolean NOT NULL DEFAULT true,
  paused_until  timestamptz,                      -- maintenance ends by itself
  paused_by     text,
  rack          text NOT NULL DEFAULT '' CHECK (length(rack) <= 63),
  leaf          text NOT NULL DEFAULT '' CHECK (length(leaf) <= 63),
  partition     text NOT NULL DEFAULT '' CHECK (length(partition) <= 63),
  boot_id       uuid,
  booted_at     timestamptz,
  ready_at      timestamptz,                      -- the agent finished a full round in this boot
  agent_version text NOT NULL DEFAULT '',
  driver_version text NOT NULL DEFAULT '',
  kernel        text NOT NULL DEFAULT '',
  os_image      text NOT NULL DEFAULT '',
  gpu_type      text NOT NULL DEFAULT '',
  host_serial   text NOT NULL DEFAULT '',
  address       text NOT NULL DEFAULT '',         -- what the agent calls its own address; for the SSH command
  cpus          integer,
  memory_mib    bigint,
  gpus_expected integer CHECK (gpus_expected BETWEEN 0 AND 64),
  command_n     bigint NOT NULL DEFAULT 0,        -- second half of the command epoch
  key_generation integer NOT NULL DEFAULT 0,
  interval_seconds integer NOT NULL DEFAULT 10,   -- the interval the agent was last told
  joined_at     timestamptz,
  removed_at    timestamptz,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now(),
  version       bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
);
CREATE UNIQUE INDEX node_name ON node (org_id, cluster_id, name) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX node_slot ON node (org_id, cluster_id, slot);
CREATE INDEX node_by_name ON node (org_id, cluster_id, name COLLATE "C", id);
CREATE INDEX node_by_state ON node (org_id, cluster_id, state, name COLLATE "C") WHERE removed_at IS NULL;
CREATE INDEX node_cordoned ON node (org_id) WHERE cordoned_by IS NOT NULL;
CREATE INDEX node_not_healthy ON node (org_id, cluster_id, state) WHERE state <> 'healthy' AND removed_at IS NULL;

-- The newest reading of each node: primary key only, so that every update stays on its page (HOT).
CREATE TABLE node_latest (
  org_id       uuid NOT NULL,
  node_id      uuid NOT NULL,
  seq          bigint NOT NULL DEFAULT 0,         -- the report's sequence; grows across boots
  seen_at      timestamptz,                       -- when the server received it
  boot_id      uuid,
  ready        boolean NOT NULL DEFAULT false,    -- as the last report said: each collector finished its first round
  cpu_permille smallint,
  mem_used_mib integer,
  mem_total_mib integer,
  disk_permille smallint,                         -- fullest local file system
  net_rx_mbps  integer,
  net_tx_mbps  integer,
  fabric_rx_mbps integer,
  fabric_tx_mbps integer,
  gpu_util     smallint[],                        -- percent, by index; NULL = not readable
  gpu_mem_mib  integer[],
  gpu_mem_total_mib integer[],
  gpu_temp_c   smallint[],
  gpu_power_w  smallint[],
  -- The same over the readable GPUs, made by the writer: lists and the grid read 10,000 rows without opening arrays.
  gpu_util_permille smallint,                     -- mean
  gpu_mem_used_mib integer,                       -- sum
  gpu_mem_all_mib integer,                        -- sum of totals
  gpu_temp_max_c smallint,
  PRIMARY KEY (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE TABLE collector (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
  state      text NOT NULL CHECK (state IN ('ok', 'absent', 'unknown')),   -- absent: this machine has no such thing; unknown: cannot be read
  reason     text NOT NULL DEFAULT '',
  since      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, node_id, name),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);

CREATE TABLE device (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,
  node_id    uuid NOT NULL,
  type       text NOT NULL CHECK (type IN ('gpu', 'nic', 'disk')),
  serial     text NOT NULL CHECK (length(serial) BETWEEN 1 AND 127),       -- serial, else UUID, else PCI address: what names the part
  index      integer,
  pci        text NOT NULL DEFAULT '',            -- dddd:bb:dd
  model      text NOT NULL DEFAULT '',
  firmware   text NOT NULL DEFAULT '',
  memory_mib integer,
  note       text NOT NULL DEFAULT '' CHECK (length(note) <= 1023),
  present    boolean NOT NULL DEFAULT true,       -- seen in the last inventory
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at  timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, node_id, type, serial),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
);
CREATE INDEX device_serial ON device (org_id, serial);

-- ---------------------------------------------------------------- what happened
CREATE TABLE event (
  org_id      uuid NOT NULL,
  at          timestamptz NOT NULL DEFAULT now(),
  seq         bigint NOT NULL,                    -- gap-free per org, from org_head
  type        text NOT NULL CHECK (length(type) BETWEEN 1 AND 63),
  severity    text NOT NULL DEFAULT 'info' CHECK (severity IN ('info', 'warning', 'critical')),
  cluster_id  uuid,
  node_id     uuid,
  incident_id uuid,
  repair_id   uuid,
  actor       text NOT NULL DEFAULT 'muster',
  summary     text NOT NULL DEFAULT '',
  data        jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (org_id, at, seq)
) PARTITION BY RANGE (at);
CREATE INDEX event_seq ON event (org_id, seq);
CREATE INDEX event_cluster ON event (org_id, cluster_id, at DESC, seq DESC);
CREATE INDEX event_node ON event (org_id, node_id, at DESC, seq DESC);
CREATE INDEX event_type ON event (org_id, type, at DESC, seq DESC);
CREATE INDEX event_severity ON event (org_id, severity, at DESC, seq DESC) WHERE severity <> 'info';

-- High-water mark per stream: exactly once.
CREATE TABLE node_stream (
  org_id   uuid NOT NULL,
  node_id  uuid NOT NULL,
  boot_id  uuid NOT NULL,
  stream   smallint NOT NULL,
  last_seq bigint NOT NULL,
  prev_seq bigint NOT NULL DEFAULT -1,
  PRIMARY KEY (org_id, node_id, boot_id, stream),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);

CREATE TABLE incident (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,
  no         bigint NOT NULL,
  cluster_id uuid NOT NULL,
  node_id    uuid NOT NULL,
  device     text NOT NULL DEFAULT '',            -- PCI address, port or mount; '' = the node itself
  check_id   text NOT NULL CHECK (length(check_id) BETWEEN 1 AND 63),
  code       text NOT NULL DEFAULT '',
  severity   text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  action     text NOT NULL DEFAULT 'none'
             CHECK (action IN ('none', 'reset_gpu', 'reboot', 'power_cycle', 'reprovision', 'failover', 'remove')),
  node_fault boolean NOT NULL DEFAULT false,
  clears     text NOT NULL DEFAULT 'person' CHECK (clears IN ('new_boot', 'event', 'quiet', 'person')),
  quiet_seconds integer NOT NULL DEFAULT 0,       -- clears = quiet: no new event for so long
  boot_id    uuid,                                -- the boot the newest event belongs to
  summary    text NOT NULL DEFAULT '',
  evidence   jsonb NOT NULL DEFAULT '[]',         -- [{at, source, text, opened}], the first lines, at most 20
  count      bigint NOT NULL DEFAULT 1,
  first_at   timestamptz NOT NULL,
  last_at    timestamptz NOT NULL,
  closed_at  timestamptz,
  close_reason text NOT NULL DEFAULT '',
  closed_by  text NOT NULL DEFAULT '',
  note       text NOT NULL DEFAULT '' CHECK (length(note) <= 4095),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
);
CREATE UNIQUE INDEX incident_open ON incident (org_id, node_id, device, check_id, code) WHERE closed_at IS NULL;
-- Lists go by number, and nothing that folding changes is indexed: every repeat stays on its page (HOT).
CREATE INDEX incident_cluster ON incident (org_id, cluster_id, no DESC);
CREATE INDEX incident_node ON incident (org_id, node_id, no DESC);
CREATE INDEX incident_closed ON incident (org_id, cluster_id, closed_at);
CREATE UNIQUE INDEX incident_no ON incident (org_id, no);

CREATE TABLE node_transition (
  org_id     uuid NOT NULL,
  cluster_id uuid NOT NULL,
  node_id    uuid NOT NULL,
  at         timestamptz NOT NULL DEFAULT now(),
  state      text NOT NULL,                       -- a node state, or 'removed'
  reason     text NOT NULL DEFAULT '',
  PRIMARY KEY (org_id, node_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX node_transition_cluster ON node_transition (org_id, cluster_id, at);

CREATE TABLE state_anchor (
  org_id     uuid NOT NULL,
  cluster_id uuid NOT NULL,
  at         timestamptz NOT NULL,
  node_ids   uuid[] NOT NULL,
  states     text[] NOT NULL,
  PRIMARY KEY (org_id, cluster_id, at),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE
);

-- What the overview shows, refreshed for changed clusters every few seconds.
CREATE TABLE cluster_rollup (
  org_id       uuid NOT NULL,
  cluster_id   uuid NOT NULL,
  version      bigint NOT NULL DEFAULT 1,
  at           timestamptz NOT NULL DEFAULT now(),
  nodes        integer NOT NULL DEFAULT 0,
  pending      integer NOT NULL DEFAULT 0,
  starting     integer NOT NULL DEFAULT 0,
  healthy      integer NOT NULL DEFAULT 0,
  unhealthy    integer NOT NULL DEFAULT 0,
  repairing    integer NOT NULL DEFAULT 0,
  paused       integer NOT NULL DEFAULT 0,
  unknown      integer NOT NULL DEFAULT 0,
  warning      integer NOT NULL DEFAULT 0,
  gpus         integer NOT NULL DEFAULT 0,
  gpus_read    integer NOT NULL DEFAULT 0,        -- GPUs whose utilisation is known now
  gpu_busy_ratio real,                            -- NULL = no GPU can be read
  gpu_mem_used_mib bigint,
  gpu_mem_total_mib bigint,
  cpu_ratio    real,
  mem_used_mib bigint,
  mem_total_mib bigint,
  net_mbps     bigint,                            -- sum over nodes, receive + transmit
  fabric_mbps  bigint,
  power_w      bigint,
  seen_20s     integer NOT NULL DEFAULT 0,        -- nodes seen in the last 20 s
  drift        jsonb NOT NULL DEFAULT '[]',       -- [{field, wanted, seen: [{value, nodes}]}]: where nodes differ from what the cluster wants
  PRIMARY KEY (org_id, cluster_id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);

-- One row a cluster, sample and chunk of 1,024 slots; arrays by node.slot.
CREATE TABLE cluster_history (
  org_id     uuid NOT NULL,
  cluster_id uuid NOT NULL,
  at         timestamptz NOT NULL,
  chunk      integer NOT NULL,
  gpu_util   smallint[] NOT NULL,                 -- percent, mean of the node's GPUs; NULL = no data
  gpu_mem_permille smallint[] NOT NULL,
  cpu_permille smallint[] NOT NULL,
  net_mbps   integer[] NOT NULL,                  -- fabric where there is one, else Ethernet
  PRIMARY KEY (org_id, cluster_id, at, chunk)
) PARTITION BY RANGE (at);

-- ---------------------------------------------------------------- repairs and commands
CREATE TABLE repair (
  org_id      uuid NOT NULL,
  id          uuid NOT NULL,
  no          bigint NOT NULL,
  cluster_id  uuid NOT NULL,
  node_id     uuid NOT NULL,
  incident_id uuid,                               -- the one that decided the action
  incident_ids uuid[] NOT NULL DEFAULT '{}',      -- all that the plan is about, sorted; part of plan_hash
  action      text NOT NULL CHECK (action IN ('reset_gpu', 'reboot', 'power_cycle', 'reprovision', 'failover', 'remove')),
  state       text NOT NULL DEFAULT 'proposed' CHECK (state IN
              ('proposed', 'approved', 'cordoning', 'draining', 'acting', 'rejoining', 'verifying', 'unknown',
               'succeeded', 'failed', 'rejected', 'cancelled', 'resolved')),
  state_since timestamptz NOT NULL DEFAULT now(),
  deadline_at timestamptz,                        -- when the present step is late
  reason      text NOT NULL DEFAULT '',           -- one sentence: why, or how it ended
  requested_by text NOT NULL DEFAULT 'muster',
  decided_by  text,
  decided_at  timestamptz,
  comment     text NOT NULL DEFAULT '' CHECK (length(comment) <= 4095),
  plan        jsonb NOT NULL,                     -- what was shown: see docs/api
  plan_hash   text NOT NULL,                      -- 64 hex digits over the plan's binding parts
  boot_id     uuid,                               -- the boot the plan is about
  attempt     integer NOT NULL DEFAULT 1,         -- of this action on this node in 7 days
  cordoned    boolean NOT NULL DEFAULT false,     -- we made the node unschedulable, so we undo it
  executor    text,                               -- what would carry it out; NULL = nothing here can, so it cannot be approved
  command_id  uuid,                               -- the order that went out; set once
  created_at  timestamptz NOT NULL DEFAULT now(),
  ended_at    timestamptz,
  version     bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
) WITH (fillfactor = 70);
-- No index holds the state, so that a step stays on its page (HOT); what is open is found by this one.
CREATE UNIQUE INDEX repair_open ON repair (org_id, node_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX repair_no ON repair (org_id, no);
CREATE INDEX repair_cluster ON repair (org_id, cluster_id, created_at DESC, id DESC);
CREATE INDEX repair_node ON repair (org_id, node_id, created_at DESC, id DESC);
CREATE INDEX repair_created ON repair (org_id, created_at DESC, id DESC);

CREATE TABLE repair_step (
  org_id     uuid NOT NULL,
  repair_id  uuid NOT NULL,
  n          integer NOT NULL,
  state      text NOT NULL,
  detail     text NOT NULL DEFAULT '',
  actor      text NOT NULL DEFAULT 'muster',
  started_at timestamptz NOT NULL DEFAULT now(),
  ended_at   timestamptz,
  PRIMARY KEY (org_id, repair_id, n),
  FOREIGN KEY (org_id, repair_id) REFERENCES repair (org_id, id) ON DELETE CASCADE
);

CREATE TABLE command (
  org_id      uuid NOT NULL,
  id          uuid NOT NULL,
  node_id     uuid NOT NULL,
  repair_id   uuid,
  epoch_generation integer NOT NULL,
  epoch_n     bigint NOT NULL,
  action      text NOT NULL CHECK (action IN ('reset_gpu', 'reboot')),
  args        jsonb NOT NULL DEFAULT '{}',
  boot_id     uuid,                               -- destructive commands act in this boot only
  state       text NOT NULL DEFAULT 'ready'
              CHECK (state IN ('ready', 'sent', 'accepted', 'done', 'refused', 'failed', 'withdrawn', 'expired')),
  created_at  timestamptz NOT NULL DEFAULT now(),
  sent_at     timestamptz,
  ended_at    timestamptz,
  deadline_at timestamptz NOT NULL,
  result      text NOT NULL DEFAULT '',
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, node_id, epoch_generation, epoch_n),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
);
CREATE INDEX command_waiting ON command (state) WHERE state IN ('ready', 'sent');

-- ---------------------------------------------------------------- agents' credentials
CREATE TABLE join_token (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,
  cluster_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  uses_left  integer NOT NULL CHECK (uses_left >= 0),
  host_name  text,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
);
CREATE INDEX join_token_hash ON join_token (token_hash);

CREATE TABLE node_key (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  generation integer NOT NULL,
  public_key bytea NOT NULL CHECK (length(public_key) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  PRIMARY KEY (org_id, node_id, generation),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);

CREATE TABLE agent_token (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  token_hash bytea NOT NULL,
  generation integer NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, node_id, token_hash),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_token_hash ON agent_token (token_hash);
CREATE INDEX agent_token_expiry ON agent_token (expires_at);

-- ---------------------------------------------------------------- idempotency and audit
CREATE TABLE idempotency (
  org_id      uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  key         text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  fingerprint bytea NOT NULL,
  status      integer NOT NULL,
  body        text,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE audit_head (
  org_id uuid PRIMARY KEY REFERENCES org ON DELETE CASCADE,
  seq    bigint NOT NULL DEFAULT 0,
  hash   bytea NOT NULL DEFAULT sha256('muster')
) WITH (fillfactor = 50);

CREATE TABLE audit (
  org_id    uuid NOT NULL,
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL DEFAULT now(),   -- the partition is chosen before the trigger runs
  body      text NOT NULL CHECK (length(body) <= 65536),   -- JSON: actor, credential, address, request_id, action, target, target_name, outcome, before, after
  prev_hash bytea NOT NULL,
  hash      bytea NOT NULL,
  PRIMARY KEY (org_id, at, seq)
) PARTITION BY RANGE (at);
CREATE INDEX audit_seq ON audit (org_id, seq);

CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE h record;
BEGIN
  SELECT a.seq, a.hash INTO STRICT h FROM audit_head a WHERE a.org_id = NEW.org_id FOR UPDATE;
  NEW.seq := h.seq + 1;
  NEW.at := now();
  NEW.prev_hash := h.hash;
  NEW.hash := sha256(h.hash || convert_to(NEW.org_id::text || ' ' || NEW.seq || ' ' || extract(epoch FROM NEW.at)::text || ' ' || NEW.body, 'UTF8'));
  UPDATE audit_head a SET seq = NEW.seq, hash = NEW.hash WHERE a.org_id = NEW.org_id;
  RETURN NEW;
END $$;
CREATE TRIGGER audit_chain BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_chain();

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit rows are never changed' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

-- ---------------------------------------------------------------- credentials are found before the org is known
-- One row or none for a token's SHA-256. kind: session, service, agent.
CREATE FUNCTION auth_lookup(hash bytea)
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
  LIMIT 1
$$;
REVOKE ALL ON FUNCTION auth_lookup(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(bytea) TO muster_app;

-- The join token's org and cluster; redeeming it is a statement of its own. A used-up token is found too: the same node may ask again.
CREATE FUNCTION join_lookup(hash bytea) RETURNS TABLE (org_id uuid, cluster_id uuid, token_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT t.org_id, t.cluster_id, t.id FROM join_token t
   WHERE t.token_hash = hash AND t.revoked_at IS NULL AND t.expires_at > now() LIMIT 1
$$;
REVOKE ALL ON FUNCTION join_lookup(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION join_lookup(bytea) TO muster_app;

-- The node's org and present key, for the signed challenge that gives an access token.
CREATE FUNCTION node_key_lookup(node uuid) RETURNS TABLE (org_id uuid, generation integer, public_key bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT k.org_id, k.generation, k.public_key FROM node_key k
    JOIN node n ON n.org_id = k.org_id AND n.id = k.node_id AND n.removed_at IS NULL
   WHERE k.node_id = node AND k.revoked_at IS NULL ORDER BY k.generation DESC LIMIT 1
$$;
REVOKE ALL ON FUNCTION node_key_lookup(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION node_key_lookup(uuid) TO muster_app;
CREATE INDEX node_key_node ON node_key (node_id);

-- The orgs a person belongs to: the only read across orgs that a request may make.
CREATE FUNCTION person_orgs(person uuid) RETURNS TABLE (id uuid, name text, title text, demo boolean, created_at timestamptz, updated_at timestamptz, version bigint, roles text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muster, pg_temp AS $$
  SELECT o.id, o.name, o.title, o.demo, o.created_at, o.updated_at, o.version, array_agg(m.role ORDER BY m.role)
    FROM membership m JOIN org o ON o.id = m.org_id WHERE m.person_id = person GROUP BY o.id ORDER BY o.name
$$;
REVOKE ALL ON FUNCTION person_orgs(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION person_orgs(uuid) TO muster_app;

-- ---------------------------------------------------------------- partitions, made ahead by day
-- Runs as the owner for whoever may call it; the list of tables is fixed here. Returns how many were made.
CREATE FUNCTION partitions_make(days integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE t text; d date; part text; made integer := 0;
BEGIN
  IF days NOT BETWEEN 0 AND 60 THEN RAISE EXCEPTION 'days must be 0 to 60'; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('muster.partitions_make'));
  FOREACH t IN ARRAY ARRAY['event', 'node_transition', 'cluster_history', 'audit'] LOOP
    FOR i IN -1..days LOOP
      d := (now() AT TIME ZONE 'UTC')::date + i;
      part := t || '_' || to_char(d, 'YYYYMMDD');
      IF to_regclass('muster.' || part) IS NULL THEN
        EXECUTE format('CREATE TABLE muster.%I (LIKE muster.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, t);
        EXECUTE format('ALTER TABLE muster.%I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE muster.%I FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE muster.%I ATTACH PARTITION muster.%I FOR VALUES FROM (%L) TO (%L)', t, part,
                       d::text || ' 00:00:00+00', (d + 1)::text || ' 00:00:00+00');
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
REVOKE ALL ON FUNCTION partitions_make(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION partitions_make(integer) TO muster_loop;

-- ---------------------------------------------------------------- row security and grants
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['org_head', 'membership', 'session', 'service_token', 'project', 'cluster', 'node', 'node_latest', 'collector',
      'device', 'event', 'node_stream', 'incident', 'node_transition', 'state_anchor', 'cluster_rollup', 'cluster_history', 'repair',
      'repair_step', 'command', 'join_token', 'node_key', 'agent_token', 'idempotency', 'audit_head', 'audit'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['node_latest', 'node_stream', 'incident', 'org_head', 'event'] LOOP
    EXECUTE format('CREATE POLICY ingest ON %I TO muster_ingest USING (true) WITH CHECK (true)', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['org_head', 'repair', 'command', 'session', 'agent_token', 'join_token', 'idempotency'] LOOP
    EXECUTE format('CREATE POLICY due ON %I FOR SELECT TO muster_loop USING (true)', t);
  END LOOP;
END $$;
ALTER TABLE org ENABLE ROW LEVEL SECURITY;
ALTER TABLE org FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON org TO muster_owner USING (true) WITH CHECK (true);
CREATE POLICY tenant ON org TO muster_app, muster_loop
  USING (id = nullif(current_setting('muster.org', true), '')::uuid) WITH CHECK (id = nullif(current_setting('muster.org', true), '')::uuid);

GRANT SELECT ON installation TO muster_app, muster_loop;
GRANT UPDATE (auth_epoch) ON installation TO muster_app, muster_loop;
GRANT SELECT, INSERT, UPDATE ON person TO muster_app;
GRANT SELECT, INSERT, UPDATE ON sign_in_link TO muster_app;
GRANT DELETE ON sign_in_link TO muster_loop;
GRANT SELECT ON sign_in_link TO muster_loop;
GRANT SELECT, INSERT, UPDATE ON org TO muster_app;
GRANT SELECT, INSERT ON audit_head TO muster_app;
GRANT SELECT, UPDATE ON org TO muster_loop;
GRANT SELECT, INSERT, UPDATE ON org_head TO muster_app;
GRANT SELECT, UPDATE ON org_head TO muster_loop;
GRANT SELECT, INSERT, UPDATE, DELETE ON membership, session, service_token, join_token TO muster_app;
GRANT SELECT, INSERT, UPDATE ON project, cluster, node, collector, device, incident, repair, repair_step, command, node_key, idempotency TO muster_app, muster_loop;
GRANT DELETE ON collector TO muster_app;
GRANT SELECT, INSERT, UPDATE ON node_latest TO muster_app;
GRANT SELECT ON node_latest, membership, session, service_token, join_token, agent_token, audit_head TO muster_loop;
GRANT SELECT, INSERT, DELETE ON agent_token TO muster_app;
GRANT DELETE ON session, agent_token, join_token, idempotency TO muster_loop;
GRANT SELECT, INSERT ON event, node_transition TO muster_app, muster_loop;
GRANT SELECT, INSERT (org_id, body) ON audit TO muster_app, muster_loop;
GRANT SELECT ON cluster_rollup, cluster_history, state_anchor, node_stream TO muster_app, muster_loop;
GRANT INSERT ON cluster_rollup TO muster_app;
GRANT INSERT, UPDATE, DELETE ON cluster_rollup TO muster_loop;
GRANT INSERT ON cluster_history, state_anchor TO muster_loop;
GRANT DELETE ON state_anchor, node_stream TO muster_loop;

GRANT SELECT (org_id, node_id, seq), UPDATE ON node_latest TO muster_ingest;
GRANT SELECT, INSERT, UPDATE ON node_stream TO muster_ingest;
GRANT SELECT, INSERT, UPDATE ON incident TO muster_ingest;
GRANT SELECT (org_id, event_seq, last_no), UPDATE (event_seq, last_no) ON org_head TO muster_ingest;
GRANT INSERT ON event TO muster_ingest;

SELECT partitions_make(14);
