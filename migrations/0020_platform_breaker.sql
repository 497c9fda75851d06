-- The breaker of the whole installation, beside those of clusters and organizations.
SET LOCAL search_path = muster;

ALTER TABLE installation
  ADD COLUMN breaker_opened_at timestamptz,       -- NULL = closed
  ADD COLUMN breaker_open_reason text NOT NULL DEFAULT '',
  ADD COLUMN breaker_reset_at timestamptz,
  ADD COLUMN breaker_reset_by text NOT NULL DEFAULT '',
  ADD COLUMN breaker_reset_comment text NOT NULL DEFAULT '' CHECK (length(breaker_reset_comment) <= 4095);
GRANT UPDATE (breaker_opened_at, breaker_open_reason, breaker_reset_at, breaker_reset_by, breaker_reset_comment) ON installation TO muster_app;
GRANT UPDATE (breaker_opened_at, breaker_open_reason) ON installation TO muster_loop;

-- On an org's row: what it adds to the installation's breaker, and which opening of that its people were told of.
ALTER TABLE repair_guard
  ADD COLUMN nodes bigint NOT NULL DEFAULT 0,
  ADD COLUMN newly_unhealthy bigint NOT NULL DEFAULT 0,
  ADD COLUMN counted_at timestamptz,
  ADD COLUMN platform_told_at timestamptz;
CREATE POLICY due ON repair_guard FOR SELECT TO muster_loop USING (true);
