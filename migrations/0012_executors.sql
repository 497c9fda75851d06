-- Schedulers: what Slurm or Kubernetes know of nodes, and what Muster asked of them.
SET LOCAL search_path = muster;

-- One row a cluster whose scheduler is configured.
CREATE TABLE cluster_scheduler (
  org_id     uuid NOT NULL,
  cluster_id uuid NOT NULL,
  kind       text NOT NULL CHECK (kind IN ('slurm', 'kubernetes')),
  tried_at   timestamptz NOT NULL,
  read_at    timestamptz,                         -- the last complete reading; what is older than a minute is not known any more
  error      text NOT NULL DEFAULT '' CHECK (length(error) <= 512),   -- why the last try failed; empty = it did not
  PRIMARY KEY (org_id, cluster_id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
);

-- One row a node that was asked about. A node that its scheduler does not know has state 'unknown'.
CREATE TABLE node_scheduler (
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  cluster_id uuid NOT NULL,
  state      text NOT NULL CHECK (state IN ('idle', 'allocated', 'down', 'unknown')),
  closed     boolean NOT NULL,                    -- takes no new work, whoever said so
  reason     text NOT NULL DEFAULT '',
  jobs       jsonb NOT NULL DEFAULT '[]',         -- [{id, user, name, gpus, started_at, nodes, blocked}]
  job_ids    text NOT NULL DEFAULT '',            -- sorted, comma between; part of a plan's hash
  our_reason text NOT NULL DEFAULT '',            -- what Muster wrote when it closed the node; empty = it did not. Written before the call
  said       text NOT NULL DEFAULT '',            -- the last refusal of a wish
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id)
);
CREATE INDEX node_scheduler_cluster ON node_scheduler (org_id, cluster_id);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['cluster_scheduler', 'node_scheduler'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY scoped ON %I AS RESTRICTIVE FOR SELECT TO muster_app USING (
      CASE WHEN (SELECT nullif(current_setting(''muster.scope'', true), '''') IS NULL) THEN true
           ELSE cluster_id = ANY ((SELECT nullif(current_setting(''muster.scope'', true), '''')::uuid[])::uuid[]) END)', t);
  END LOOP;
END $$;
GRANT SELECT ON cluster_scheduler, node_scheduler TO muster_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON cluster_scheduler, node_scheduler TO muster_loop;
