-- Checks as an org wants them: a milder severity, another action, a threshold, in shadow or off; for all, one cluster, one type of GPU.
SET LOCAL search_path = muster;

CREATE TABLE check_override (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  check_id   text NOT NULL CHECK (length(check_id) BETWEEN 1 AND 63),
  cluster_id uuid,                                -- NULL = every cluster
  gpu_type   text NOT NULL DEFAULT '' CHECK (length(gpu_type) <= 255),   -- '' = every type
  mode       text CHECK (mode IN ('live', 'shadow', 'off')),
  severity   text CHECK (severity IN ('info', 'warning', 'critical')),   -- the most that an incident may have
  action     text CHECK (action IN ('none', 'reset_gpu', 'reboot', 'power_cycle', 'reprovision', 'failover', 'remove')),
  threshold  integer CHECK (threshold BETWEEN 1 AND 1000000),            -- events from which on an incident counts
  reason     text NOT NULL DEFAULT '' CHECK (length(reason) <= 1023),
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX check_override_place ON check_override
  (org_id, check_id, gpu_type, coalesce(cluster_id, '00000000-0000-0000-0000-000000000000'));
ALTER TABLE check_override ENABLE ROW LEVEL SECURITY;
ALTER TABLE check_override FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON check_override TO muster_owner USING (true) WITH CHECK (true);
CREATE POLICY tenant ON check_override TO muster_app, muster_loop
  USING (org_id = nullif(current_setting('muster.org', true), '')::uuid) WITH CHECK (org_id = nullif(current_setting('muster.org', true), '')::uuid);
CREATE POLICY scoped ON check_override AS RESTRICTIVE FOR SELECT TO muster_app USING (
  CASE WHEN (SELECT nullif(current_setting('muster.scope', true), '') IS NULL) THEN true
       ELSE cluster_id IS NULL OR cluster_id = ANY ((SELECT nullif(current_setting('muster.scope', true), '')::uuid[])::uuid[]) END);
CREATE POLICY ingest ON check_override FOR SELECT TO muster_ingest USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON check_override TO muster_app;
GRANT SELECT ON check_override TO muster_loop, muster_ingest;

-- The writers apply them, so they read a node's type of GPU.
CREATE POLICY ingest ON node FOR SELECT TO muster_ingest USING (true);
GRANT SELECT (org_id, id, gpu_type) ON node TO muster_ingest;
