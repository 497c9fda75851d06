-- Policies of repairs, and what holds repairs back: a person's stop, or a rule that opened the breaker.
SET LOCAL search_path = muster;

-- The most specific one counts as a whole: of the node, else of its cluster, else of the org, else what the server comes with.
CREATE TABLE policy (
  org_id     uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id         uuid NOT NULL,
  cluster_id uuid,                                -- NULL = the whole org
  node_id    uuid,                                -- NULL = the whole cluster or org
  settings   jsonb NOT NULL CHECK (jsonb_typeof(settings) = 'object' AND length(settings::text) <= 32768),   -- server/repair/policy.h
  updated_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version    bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES node (org_id, id),
  CHECK (node_id IS NULL OR cluster_id IS NOT NULL)
);
CREATE UNIQUE INDEX policy_place ON policy (org_id, coalesce(cluster_id, org_id), coalesce(node_id, org_id));

-- One row for what was ever stopped, broken or counted: an org (target_id = org_id), a cluster or a node.
CREATE TABLE repair_guard (
  org_id        uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  target_id     uuid NOT NULL,
  reach         text NOT NULL CHECK (reach IN ('org', 'cluster', 'node')),
  cluster_id    uuid,
  starts        bigint NOT NULL DEFAULT 0,        -- grows with each approval: whoever counted before another's start has counted wrong
  stopped_at    timestamptz,                      -- a person's stop; NULL = none
  stopped_by    text NOT NULL DEFAULT '',
  stop_comment  text NOT NULL DEFAULT '' CHECK (length(stop_comment) <= 4095),
  lifted_at     timestamptz,
  opened_at     timestamptz,                      -- the breaker is open; NULL = closed
  open_reason   text NOT NULL DEFAULT '',
  reset_at      timestamptz,
  reset_by      text NOT NULL DEFAULT '',
  reset_comment text NOT NULL DEFAULT '' CHECK (length(reset_comment) <= 4095),
  version       bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, target_id),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
) WITH (fillfactor = 70);

ALTER TABLE installation
  ADD COLUMN repairs_stopped_at timestamptz,      -- the stop of the whole installation
  ADD COLUMN repairs_stopped_by text NOT NULL DEFAULT '',
  ADD COLUMN repairs_stop_comment text NOT NULL DEFAULT '',
  ADD COLUMN repairs_lifted_at timestamptz;

ALTER TABLE node
  ADD COLUMN role text NOT NULL DEFAULT '' CHECK (length(role) <= 63);   -- login, controller: the last healthy one is left alone

ALTER TABLE repair
  ADD COLUMN why_not jsonb NOT NULL DEFAULT '[]', -- [{code, detail}]: what keeps it from starting by itself, as last seen
  ADD COLUMN automatic boolean NOT NULL DEFAULT false,   -- a policy decided it
  ADD COLUMN would_at timestamptz,                -- a policy on trial would have started it
  ADD COLUMN first_approver text,                 -- where two people are asked for: who was the first
  ADD COLUMN batch_id uuid,                       -- repairs that were asked for together
  ADD COLUMN wave integer;                        -- they start wave by wave
CREATE INDEX repair_batch ON repair (org_id, batch_id) WHERE batch_id IS NOT NULL;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['policy', 'repair_guard'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
    -- What holds in the whole org holds for whoever sees a part of it.
    EXECUTE format('CREATE POLICY scoped ON %I AS RESTRICTIVE FOR SELECT TO muster_app USING (
      CASE WHEN (SELECT nullif(current_setting(''muster.scope'', true), '''') IS NULL) THEN true
           ELSE cluster_id IS NULL OR cluster_id = ANY ((SELECT nullif(current_setting(''muster.scope'', true), '''')::uuid[])::uuid[]) END)', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON policy TO muster_app;
GRANT SELECT ON policy TO muster_loop;
GRANT SELECT, INSERT, UPDATE ON repair_guard TO muster_app, muster_loop;
GRANT UPDATE (repairs_stopped_at, repairs_stopped_by, repairs_stop_comment, repairs_lifted_at) ON installation TO muster_app;

-- Ids carry the time at which the server made them (RFC 9562, version 7): clocks of nodes decide nothing.
CREATE FUNCTION id_at(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;
CREATE FUNCTION id_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT to_timestamp(('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0)
$$;

-- A text from outside in a line of Markdown: no markup, one line.
CREATE FUNCTION plain(text text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_replace(regexp_replace(text, '[[:cntrl:]]+', ' ', 'g'), '([\\`*_{}\[\]<>#|!])', '\\\1', 'g')
$$;
