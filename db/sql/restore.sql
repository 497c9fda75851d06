-- After a backup was restored: what happened since is not known, so nothing old may act and nothing open is trusted.

-- Epochs begin with the generation: agents refuse what was ordered in the old one. The auth epoch drops cached credentials.
-- name: restore_generation
-- role: migrate
-- scope: global
UPDATE installation SET restore_generation = restore_generation + 1, auth_epoch = auth_epoch + 1 WHERE one
RETURNING restore_generation;

-- name: restore_commands
-- role: migrate
-- scope: global
WITH act AS (
  UPDATE command SET state = 'withdrawn', ended_at = now(), result = 'The database was restored from a backup.'
   WHERE state IN ('ready', 'sent', 'accepted') RETURNING org_id
), head AS (
  UPDATE org_head h SET command_seq = h.command_seq + 1 WHERE h.org_id IN (SELECT a.org_id FROM act a)
)
SELECT count(*) AS commands FROM act;

-- $1 states it is possible in $2 the state it leads to
-- name: restore_repairs
-- role: migrate
-- scope: global
WITH cur AS MATERIALIZED (
  SELECT r.org_id, r.id, r.no, r.cluster_id, r.node_id, r.state
    FROM repair r WHERE r.ended_at IS NULL AND r.state = ANY ($1::text[]) ORDER BY r.org_id, r.id FOR UPDATE
), act AS (
  UPDATE repair r SET state = $2::text, state_since = now(), deadline_at = NULL, version = r.version + 1
    FROM cur WHERE r.org_id = cur.org_id AND r.id = cur.id
  RETURNING r.org_id, r.id
), closed AS (
  UPDATE repair_step s SET ended_at = now() FROM act WHERE s.org_id = act.org_id AND s.repair_id = act.id AND s.ended_at IS NULL
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail)
  SELECT act.org_id, act.id, (SELECT coalesce(max(s.n), 0) + 1 FROM repair_step s WHERE s.org_id = act.org_id AND s.repair_id = act.id),
         $2::text, 'The database was restored from a backup: what happened since is not known.' FROM act
), many AS MATERIALIZED (
  SELECT cur.org_id, count(*) AS n FROM cur JOIN act ON act.org_id = cur.org_id AND act.id = cur.id GROUP BY cur.org_id ORDER BY cur.org_id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + many.n FROM many WHERE h.org_id = many.org_id RETURNING h.org_id, h.event_seq - many.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, repair_id, summary, data)
  SELECT cur.org_id, head.base + row_number() OVER (PARTITION BY cur.org_id ORDER BY cur.no), 'repair.unknown', 'warning', cur.cluster_id, cur.node_id, cur.id,
         'Repair ' || cur.no || ' is ' || $2::text || ': the database was restored from a backup', jsonb_build_object('no', cur.no, 'from', cur.state)
    FROM cur JOIN head ON head.org_id = cur.org_id
)
SELECT count(*) AS repairs FROM act;

-- Every org's log says that its history may have a hole here.
-- name: restore_audit
-- role: migrate
-- scope: global
INSERT INTO audit (org_id, body)
SELECT h.org_id, json_build_object('actor', $1::text, 'action', 'installation.restore', 'target', NULL, 'target_name', NULL, 'outcome', 'done',
                                   'before', NULL, 'after', json_build_object('restore_generation', i.restore_generation))::text
  FROM audit_head h CROSS JOIN installation i ORDER BY h.org_id;
