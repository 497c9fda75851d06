-- Machines that a provisioner (OpenStack Ironic) installs: the pool of spares, and orders step by step.
SET LOCAL search_path = muster;

-- Which machine a node is, once an order has looked it up or a failover has moved the node.
CREATE TABLE node_machine (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  cluster_id uuid NOT NULL,
  machine    text NOT NULL CHECK (length(machine) BETWEEN 1 AND 253),   -- the provisioner's id: a name may move to other hardware
  since      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
);

-- Machines that may take the place of a broken one. What a failover set aside is in it too, as broken.
CREATE TABLE spare (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,
  cluster_id uuid NOT NULL,
  machine    text NOT NULL CHECK (length(machine) BETWEEN 1 AND 253),
  serial     text NOT NULL DEFAULT '' CHECK (length(serial) <= 255),    -- of the host; lets its agent in by itself
  note       text NOT NULL DEFAULT '' CHECK (length(note) <= 255),
  state      text NOT NULL DEFAULT 'available' CHECK (state IN ('available', 'claimed', 'broken')),
  reason     text NOT NULL DEFAULT '' CHECK (length(reason) <= 512),    -- why it is broken
  repair_id  uuid,
  node_id    uuid,                                                      -- that it is or was claimed for
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, machine),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id),
  CHECK (state <> 'claimed' OR (repair_id IS NOT NULL AND node_id IS NOT NULL)),
  CHECK (state <> 'available' OR repair_id IS NULL)
);
-- A repair holds one spare at a time, and a spare is one repair's.
CREATE UNIQUE INDEX spare_claimed ON spare (org_id, repair_id) WHERE state = 'claimed';
CREATE INDEX spare_pool ON spare (org_id, cluster_id, id);

ALTER TABLE command
  DROP CONSTRAINT command_executor_check,
  ADD CONSTRAINT command_executor_check CHECK (executor IN ('agent', 'machine', 'webhook', 'ironic')),
  DROP CONSTRAINT command_action_check,
  ADD CONSTRAINT command_action_check CHECK (action IN ('reset_gpu', 'reboot') OR (executor IN ('machine', 'webhook') AND action = 'power_cycle')
    OR (executor = 'webhook' AND action = 'reprovision')
    OR (executor = 'ironic' AND action IN ('power_cycle', 'reprovision', 'failover', 'remove')));

-- How far an order to a provisioner is. One server at a time works on it, for the time of a lease; fence tells a server whose lease ended.
CREATE TABLE machine_order (
  org_id      uuid NOT NULL,
  command_id  uuid NOT NULL,
  machine     text NOT NULL,                      -- the node's own
  spare_id    uuid,
  step        integer NOT NULL DEFAULT 0,
  step_since  timestamptz NOT NULL DEFAULT now(),
  step_until  timestamptz,                        -- NULL = not looked at yet
  sent        boolean NOT NULL DEFAULT false,     -- stored before the call: its effect may have gone out
  begun       boolean NOT NULL DEFAULT false,
  tries       integer NOT NULL DEFAULT 0,
  before      text NOT NULL DEFAULT '',
  look_at     timestamptz NOT NULL DEFAULT now(),
  lease_until timestamptz,
  fence       bigint NOT NULL DEFAULT 0,
  ended       boolean NOT NULL DEFAULT false,
  PRIMARY KEY (org_id, command_id),
  FOREIGN KEY (org_id, command_id) REFERENCES command (org_id, id)
);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['node_machine', 'spare', 'machine_order'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['node_machine', 'spare'] LOOP
    EXECUTE format('CREATE POLICY scoped ON %I AS RESTRICTIVE FOR SELECT TO muster_app USING (
      CASE WHEN (SELECT nullif(current_setting(''muster.scope'', true), '''') IS NULL) THEN true
           ELSE cluster_id = ANY ((SELECT nullif(current_setting(''muster.scope'', true), '''')::uuid[])::uuid[]) END)', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON spare TO muster_app;
GRANT SELECT, INSERT, UPDATE ON node_machine, machine_order TO muster_app;
GRANT SELECT ON node_machine, spare, machine_order TO muster_loop;
