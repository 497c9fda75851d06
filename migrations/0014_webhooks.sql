-- Webhooks: what an org wants told elsewhere, and each telling with its tries. The outbox is `event` itself: its seq is given under the org's
-- lock, so commits come in its order, and a cursor behind it misses nothing.
SET LOCAL search_path = muster;

CREATE TABLE webhook (
  org_id          uuid NOT NULL REFERENCES org ON DELETE CASCADE,
  id              uuid NOT NULL,
  name            text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
  url             text NOT NULL CHECK (octet_length(url) BETWEEN 9 AND 2048),
  ca_certificate  text CHECK (octet_length(ca_certificate) <= 16384),   -- the only authorities trusted; NULL = the system's
  kinds           text[] NOT NULL CHECK (cardinality(kinds) BETWEEN 1 AND 50),
  cluster_id      uuid,                            -- only of this cluster, and what is about all; NULL = all
  enabled         boolean NOT NULL DEFAULT true,
  secret          bytea NOT NULL,                  -- sealed; signs
  previous_secret bytea,                           -- sealed; signs too
  previous_until  timestamptz,                     -- until then
  cursor_seq      bigint NOT NULL,                 -- events up to here have become deliveries, or were none of its kinds
  failures        integer NOT NULL DEFAULT 0,      -- in a row
  rest_until      timestamptz,                     -- nothing is tried before
  lease           uuid,                            -- who is sending
  leased_until    timestamptz,
  delivered_at    timestamptz,                     -- the last one that was taken
  disabled_at     timestamptz,                     -- by Muster, not by a person
  disabled_reason text NOT NULL DEFAULT '' CHECK (length(disabled_reason) <= 512),
  created_by      text NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  version         bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org_id, id),
  UNIQUE (org_id, name),
  FOREIGN KEY (org_id, cluster_id) REFERENCES cluster (org_id, id)
);

CREATE TABLE webhook_delivery (
  org_id     uuid NOT NULL,
  id         uuid NOT NULL,                        -- webhook-id: the same at each try
  n          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,   -- the order to send in
  webhook_id uuid NOT NULL,
  event_seq  bigint,                               -- NULL: a test
  kind       text NOT NULL,
  body       text NOT NULL CHECK (octet_length(body) <= 32768),
  state      text NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
  attempts   integer NOT NULL DEFAULT 0,
  tries      jsonb NOT NULL DEFAULT '[]',          -- [{at, status, duration_ms, error}], the newest 20
  next_at    timestamptz,                          -- of a waiting one
  until_at   timestamptz NOT NULL,                 -- a try after this that fails is the last
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at   timestamptz,
  PRIMARY KEY (org_id, id),
  FOREIGN KEY (org_id, webhook_id) REFERENCES webhook (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX webhook_delivery_once ON webhook_delivery (org_id, webhook_id, event_seq) WHERE event_seq IS NOT NULL;
CREATE INDEX webhook_delivery_list ON webhook_delivery (org_id, webhook_id, n DESC);
CREATE INDEX webhook_delivery_due ON webhook_delivery (org_id, webhook_id, n) WHERE state = 'waiting';
CREATE INDEX webhook_delivery_old ON webhook_delivery (org_id, ended_at) WHERE state <> 'waiting';

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['webhook', 'webhook_delivery'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY owner_all ON %I TO muster_owner USING (true) WITH CHECK (true)', t);
    EXECUTE format('CREATE POLICY tenant ON %I TO muster_app, muster_loop USING (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)
                    WITH CHECK (org_id = nullif(current_setting(''muster.org'', true), '''')::uuid)', t);
  END LOOP;
END $$;
-- The loop finds the orgs that have any.
CREATE POLICY due ON webhook FOR SELECT TO muster_loop USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook TO muster_app;
GRANT SELECT, INSERT, UPDATE ON webhook_delivery TO muster_app;
GRANT SELECT, UPDATE ON webhook TO muster_loop;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_delivery TO muster_loop;
