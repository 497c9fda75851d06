-- Checks of an org's own, what nodes should have, trials of changed checks, and the settings that agents get from all of it.
SET LOCAL search_path = muster;

ALTER TABLE check_override
  ADD COLUMN looks integer CHECK (looks BETWEEN 1 AND 200),               -- looks in a row that must find it before it is told
  ADD COLUMN clear_looks integer CHECK (clear_looks BETWEEN 1 AND 200),   -- looks in a row that must not, before it ends
  ADD COLUMN shadow_until timestamptz;                                    -- on trial until then

-- What nodes of a place should have; NULL = not said here.
CREATE TABLE expectation (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  cluster_id uuid,                                -- NULL = every cluster
  gpu_type   text NOT NULL DEFAULT '' CHECK (length(gpu_type) <= 255),
  node_id    uuid,                                -- NULL = every node
  gpus       integer CHECK (gpus BETWEEN 0 AND 64),
  ports      text CHECK (length(ports) <= 1024),  -- by commas, as in agent.conf
  port_gbps  integer CHECK (port_gbps BETWEEN 0 AND 10000),
  reason     text NOT NULL DEFAULT '' CHECK (length(reason) <= 1023),
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE,
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX expectation_place ON expectation
  (org_id, gpu_type, coalesce(cluster_id, '00000000-0000-0000-0000-000000000000'), coalesce(node_id, '00000000-0000-0000-0000-000000000000'));

-- Its incidents carry check_id 'custom:' || name.
CREATE TABLE custom_check (
  org_id       uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id           uuid NOT NULL,
  name         text NOT NULL CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$'),
  title        text NOT NULL DEFAULT '' CHECK (length(title) <= 255),
  kind         text NOT NULL CHECK (kind IN ('command', 'metric')),
  cluster_id   uuid,
  gpu_type     text NOT NULL DEFAULT '' CHECK (length(gpu_type) <= 255),
  severity     text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  action       text NOT NULL CHECK (action IN ('none', 'reset_gpu', 'reboot', 'power_cycle', 'reprovision', 'failover', 'remove')),
  mode         text NOT NULL CHECK (mode IN ('live', 'shadow', 'off')),
  shadow_until timestamptz,                       -- mode live begins then
  definition   jsonb NOT NULL CHECK (jsonb_typeof(definition) = 'object' AND octet_length(definition::text) <= 16384),
  reason       text NOT NULL DEFAULT '' CHECK (length(reason) <= 1023),
  created_by   text NOT NULL,
  updated_by   text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now(),
  version      bigint NOT NULL DEFAULT 1,
  CHECK (action = 'none' OR severity = 'critical'),
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE
);

-- Every version that was, the present one included.
CREATE TABLE custom_check_version (
  org_id   uuid NOT NULL,
  check_id uuid NOT NULL,
  version  bigint NOT NULL,
  at       timestamptz NOT NULL DEFAULT now(),
  author   text NOT NULL,
  reason   text NOT NULL DEFAULT '',
  body     jsonb NOT NULL,
  PRIMARY KEY (org_id, check_id, version),
  FOREIGN KEY (org_id, check_id) REFERENCES custom_check (org_id, id) ON DELETE CASCADE
);

-- The settings of each node whose agent takes them: what it should run and what it runs. A version is the beginning of the document's
-- SHA-256; '' = none.
CREATE TABLE node_settings (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  wanted     text NOT NULL DEFAULT '' CHECK (length(wanted) <= 64),
  document   text NOT NULL DEFAULT '' CHECK (length(document) <= 1048576),
  running    text NOT NULL DEFAULT '' CHECK (length(running) <= 64),
  running_at timestamptz NOT NULL DEFAULT now(),
  refused    text NOT NULL DEFAULT '' CHECK (length(refused) <= 64),   -- a version that the agent could not use
  PRIMARY KEY (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id) ON DELETE CASCADE
);
CREATE INDEX node_settings_due ON node_settings (org_id, node_id) WHERE wanted <> running AND wanted <> refused;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['expectation', 'custom_check', 'custom_check_version', 'node_settings'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)'
                   ' WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
END $$;
CREATE POLICY scoped ON expectation AS RESTRICTIVE FOR SELECT TO muster_app USING (
  CASE WHEN (SELECT nullif(current_setting('muster.scope', true), '') IS NULL) THEN true
       ELSE cluster_id IS NULL AND node_id IS NULL OR cluster_id = ANY ((SELECT nullif(current_setting('muster.scope', true), '')::uuid[])::uuid[]) END);
CREATE POLICY scoped ON custom_check AS RESTRICTIVE FOR SELECT TO muster_app USING (
  CASE WHEN (SELECT nullif(current_setting('muster.scope', true), '') IS NULL) THEN true
       ELSE cluster_id IS NULL OR cluster_id = ANY ((SELECT nullif(current_setting('muster.scope', true), '')::uuid[])::uuid[]) END);
CREATE POLICY ingest ON custom_check FOR SELECT TO muster_ingest USING (true);
CREATE POLICY waiting ON node_settings FOR SELECT TO muster_loop USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON expectation, custom_check TO muster_app;
GRANT SELECT, INSERT ON custom_check_version TO muster_app;
GRANT SELECT, INSERT, UPDATE ON node_settings TO muster_app;
GRANT SELECT, UPDATE ON node_settings TO muster_loop;
GRANT SELECT ON expectation, custom_check_version TO muster_loop;
GRANT SELECT, UPDATE ON custom_check, check_override TO muster_loop;
GRANT SELECT (org_id, name, cluster_id, gpu_type, severity, action, mode, shadow_until) ON custom_check TO muster_ingest;
