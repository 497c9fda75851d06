-- Repairs as the background loops propose and carry them out. Names of states come as parameters from server/repair/fsm.c.

-- Nodes whose proposal has to be made, refreshed or ended. $2 actions in the order of their weight $3 proposed state $4 states ended by a
-- person's no $5 cooldown in seconds $6 actions after whose failure only a person is left $7 failed state $8 succeeded state
-- $9 actions with an executor $10 checks that settle $11 seconds in which they do $12 checks with a grace $13 its seconds
-- $14 actions of a controller $15 nodes that have one: "org/cluster/node" $16 what the clusters' own automation does: "org/cluster/action"
-- $17 actions of a provisioner $18 clusters that have one: "org/cluster"
-- name: repair_due
-- role: loop
WITH bound AS MATERIALIZED (
  SELECT i.node_id, array_agg(i.id ORDER BY i.id) AS ids, max(array_position($2::text[], {{incident_action}})) AS weight,
         -- something to act on now: not what the present boot has just ended, nor what was repaired since its last event
         bool_or(NOT (i.clears = 'new_boot' AND l.ready AND i.boot_id IS DISTINCT FROM l.boot_id AND i.boot_id IS NOT NULL)
                 AND NOT EXISTS (SELECT FROM repair r WHERE r.org_id = $1 AND r.node_id = i.node_id AND r.state = $8::text
                                                        AND i.id = ANY (r.incident_ids) AND r.ended_at > i.last_at)
                 -- much ends by itself within a while, and while it boots a node lacks this and that
                 AND NOT (i.check_id = ANY ($10::text[]) AND i.first_at > now() - make_interval(secs => $11::float8))
                 AND NOT (i.check_id = ANY ($12::text[]) AND {{node_in_grace}} > now() - make_interval(secs => $13::float8))) AS fresh,
         bool_or({{incident_held}}) AS held,
         bool_or(l.seen_at > now() - make_interval(secs => 3 * n.interval_seconds)) AND NOT bool_or(coalesce(n.paused_until > now(), false)) AS here,
         (array_agg(n.cluster_id))[1] AS cluster_id
    FROM incident i JOIN node n ON n.org_id = $1 AND n.id = i.node_id AND n.removed_at IS NULL
    JOIN node_latest l ON l.org_id = $1 AND l.node_id = i.node_id
   WHERE i.org_id = $1 AND {{incident_counts}} AND i.node_fault AND {{incident_action}} <> 'none'
   GROUP BY i.node_id
), cut AS MATERIALIZED (
  -- nearly all silent: the fault is more likely ours than theirs
  SELECT n.cluster_id FROM node n JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
   WHERE n.org_id = $1 AND n.removed_at IS NULL AND l.seen_at IS NOT NULL AND n.cluster_id IN (SELECT b.cluster_id FROM bound b)
   GROUP BY n.cluster_id
  HAVING count(*) > 1 AND count(*) FILTER (WHERE l.seen_at < now() - make_interval(secs => 3 * n.interval_seconds)) >= 0.9 * count(*)
), waiting AS MATERIALIZED (
  SELECT r.node_id, r.action, r.state, r.requested_by, r.boot_id, r.incident_ids, r.plan, r.executor, r.org_id, r.cluster_id
    FROM repair r WHERE r.org_id = $1 AND r.ended_at IS NULL
)
SELECT b.node_id FROM bound b
 WHERE b.fresh AND b.here AND NOT b.held AND NOT EXISTS (SELECT FROM cut WHERE cut.cluster_id = b.cluster_id)
   AND NOT EXISTS (SELECT FROM waiting w WHERE w.node_id = b.node_id)
   AND NOT EXISTS (SELECT FROM repair r WHERE r.org_id = $1 AND r.node_id = b.node_id AND r.state = ANY ($4::text[])
                      AND r.ended_at > now() - make_interval(secs => $5::float8) AND b.ids <@ r.incident_ids
                      AND EXISTS (SELECT FROM repair_step s WHERE s.org_id = $1 AND s.repair_id = r.id AND s.state = r.state AND s.actor <> 'muster'))
   AND NOT EXISTS (SELECT FROM repair r WHERE r.org_id = $1 AND r.node_id = b.node_id AND r.state = $7::text
                      AND r.action = ANY ($6::text[]) AND r.incident_ids && b.ids AND array_position($2::text[], r.action) >= b.weight)
UNION ALL
SELECT r.node_id FROM waiting r JOIN cluster c ON c.org_id = $1 AND c.id = r.cluster_id
  LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = r.node_id LEFT JOIN bound b ON b.node_id = r.node_id
  LEFT JOIN node_scheduler ns ON ns.org_id = $1 AND ns.node_id = r.node_id
 WHERE r.state = $3::text
   AND (NOT {{repair_plan_holds}} OR (r.plan -> 'jobs' IS DISTINCT FROM coalesce(ns.jobs, '[]') AND (r.plan ->> 'made_at')::timestamptz < now() - interval '60 seconds')
        OR (r.requested_by = 'muster' AND (b.held OR b.weight > array_position($2::text[], r.action)))
        OR (r.executor IS NOT NULL) <> (r.action = ANY ($9::text[])
                                         OR (r.action = ANY ($14::text[]) AND EXISTS (SELECT FROM node m JOIN org o ON o.id = $1
                                             WHERE m.org_id = $1 AND m.id = r.node_id AND o.name || '/' || c.name || '/' || m.name = ANY ($15::text[])))
                                         OR EXISTS (SELECT FROM org o WHERE o.id = $1 AND o.name || '/' || c.name || '/' || r.action = ANY ($16::text[]))
                                         OR (r.action = ANY ($17::text[]) AND EXISTS (SELECT FROM org o WHERE o.id = $1 AND o.name || '/' || c.name = ANY ($18::text[]))))
        -- a plan that says another number of free spares than there are
        OR (r.action = 'failover' AND (r.plan -> 'spare' ->> 'available')::integer IS DISTINCT FROM
            (SELECT count(*) FROM spare s WHERE s.org_id = $1 AND s.cluster_id = r.cluster_id AND s.state = 'available')
            AND jsonb_typeof(r.plan -> 'spare') = 'object'))
LIMIT 256;

-- Makes and refreshes proposals. $2 array of {node_id, id, action, incident_id, incident_ids, plan, plan_hash, boot_id, attempt, executor,
-- reason, version}: version NULL makes a new one, else it replaces the plan of the proposal `id`. $3 proposed state.
-- A node that got another open repair meanwhile makes the whole statement fail on repair_open; the loop comes back.
-- name: repair_propose
-- role: loop
WITH todo AS MATERIALIZED (
  SELECT t.node_id, t.id, t.action, t.incident_id, t.incident_ids, t.plan, t.plan_hash, t.boot_id, t.attempt, t.executor, t.reason,
         t.version, n.cluster_id, n.name AS node_name
    FROM jsonb_to_recordset($2::jsonb) AS t(node_id uuid, id uuid, action text, incident_id uuid, incident_ids uuid[], plan jsonb,
                                            plan_hash text, boot_id uuid, attempt integer, executor text, reason text, version bigint)
    JOIN node n ON n.org_id = $1 AND n.id = t.node_id AND n.removed_at IS NULL
), lk AS MATERIALIZED (
  SELECT r.id, r.action AS action_was FROM todo t JOIN repair r ON r.id = t.id AND r.version = t.version
   WHERE r.org_id = $1 AND r.state = $3::text ORDER BY r.id FOR UPDATE OF r
), upd AS (
  UPDATE repair r SET action = t.action, incident_id = t.incident_id, incident_ids = t.incident_ids, plan = t.plan, plan_hash = t.plan_hash,
         boot_id = t.boot_id, attempt = t.attempt, executor = t.executor, first_approver = NULL, would_at = NULL, version = r.version + 1,
         reason = CASE WHEN r.requested_by = 'muster' THEN t.reason ELSE r.reason END
    FROM lk JOIN todo t ON t.id = lk.id WHERE r.org_id = $1 AND r.id = lk.id
  RETURNING r.id, r.no, r.reason
), made AS MATERIALIZED (
  SELECT t.id, t.node_id, row_number() OVER (ORDER BY t.id) AS place FROM todo t WHERE t.version IS NULL
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.made + c.changed, last_no = h.last_no + c.made
    FROM (SELECT (SELECT count(*) FROM made) AS made, (SELECT count(*) FROM upd) AS changed) c
   WHERE h.org_id = $1 AND c.made + c.changed > 0
  RETURNING h.event_seq - c.made - c.changed AS seq_base, h.last_no - c.made AS no_base, c.made
), ins AS (
  INSERT INTO repair AS r (org_id, id, no, cluster_id, node_id, incident_id, incident_ids, action, state, reason, plan, plan_hash, boot_id,
                           attempt, executor)
  SELECT $1, t.id, head.no_base + m.place, t.cluster_id, t.node_id, t.incident_id, t.incident_ids, t.action, $3::text, t.reason, t.plan,
         t.plan_hash, t.boot_id, t.attempt, t.executor
    FROM head, made m JOIN todo t ON t.id = m.id
  RETURNING r.id, r.no, r.reason
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail) SELECT $1, i.id, 1, $3::text, i.reason FROM ins i
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.seq_base + row_number() OVER (ORDER BY f.id), 'repair.proposed', 'warning', t.cluster_id, t.node_id, t.incident_id, t.id,
         'Repair ' || f.no || CASE WHEN f.action_was IS NULL THEN ' is proposed: '
                                   WHEN f.action_was = t.action THEN ' has a new plan: ' ELSE ' is now proposed as: ' END
         || replace(t.action, '_', ' ') || ' of ' || t.node_name || '. ' || f.reason,
         jsonb_build_object('no', f.no, 'action', t.action, 'action_before', f.action_was, 'to', $3::text)
    FROM head, (SELECT i.id, i.no, i.reason, NULL AS action_was FROM ins i
                UNION ALL SELECT u.id, u.no, u.reason, lk.action_was FROM upd u JOIN lk ON lk.id = u.id) f
    JOIN todo t ON t.id = f.id
)
SELECT (SELECT count(*) FROM ins) AS made, (SELECT count(*) FROM upd) AS changed;

-- The orgs that have repairs to carry out. $1 states in which there is something to do.
-- name: repair_orgs
-- role: loop
-- scope: global
SELECT DISTINCT r.org_id FROM repair r WHERE r.ended_at IS NULL AND r.state = ANY ($1::text[]) ORDER BY r.org_id;

-- Everything that decides the next step of an org's repairs. $2 states in which there is something to do $3 seconds that jobs may run on
-- where no policy says it.
-- name: repair_work
-- role: loop
SELECT r.id, r.no, r.version, r.state, r.action, r.requested_by, r.node_id, r.cluster_id, n.name AS node_name, c.name AS cluster_name,
       o.name AS org_name, r.command_id, o.demo,
       coalesce({{repair_stop}}, '') AS stopped,
       coalesce((SELECT CASE WHEN bool_or(o.state IN ('failed', 'unknown')) THEN 'failed' WHEN bool_or(o.ended_at IS NULL) THEN 'waits' END FROM repair o
                  WHERE o.org_id = $1 AND o.batch_id = r.batch_id AND o.wave < r.wave), '') AS earlier_waves,
       extract(epoch FROM now() - r.state_since)::float8 AS state_s,
       -- what waited for the earlier waves of its batch has its time from their end on
       greatest(r.deadline_at, CASE WHEN r.wave > 1 AND r.state = 'approved'
                                    THEN (SELECT max(o.ended_at) FROM repair o WHERE o.org_id = $1 AND o.batch_id = r.batch_id AND o.wave < r.wave)
                                         + make_interval(secs => (r.plan -> 'policy' ->> 'begin_within_seconds')::float8) END) < now() AS late,
       cardinality(r.incident_ids) AS incidents,
       (SELECT count(*) FROM incident i WHERE i.org_id = $1 AND i.id = ANY (r.incident_ids) AND i.closed_at IS NULL) AS incidents_open,
       {{repair_plan_holds}} AS plan_holds,
       l.boot_id IS NOT NULL AND l.boot_id IS DISTINCT FROM r.boot_id AS rebooted, coalesce(l.ready, false) AS ready,
       coalesce(l.seen_at < now() - make_interval(secs => 3 * n.interval_seconds), true) AS silent,
       (r.plan -> 'policy' ->> 'healthy_delay_seconds')::integer AS healthy_delay_s,
       (r.plan -> 'policy' ->> 'rejoin_within_seconds')::integer AS rejoin_within_s,
       coalesce(sc.kind, '') AS scheduler,
       coalesce(ns.closed AND ns.state IN ('idle', 'down') AND ns.job_ids = '' AND sc.read_at > r.state_since
                AND sc.read_at > now() - interval '60 seconds', false) AS drained,
       coalesce(sc.read_at > r.state_since AND ns.state <> 'unknown'
                AND NOT (ns.closed AND ns.state IN ('idle', 'down') AND ns.job_ids = ''), false) AS occupied,
       coalesce(pol.settings ->> 'idle', 'never_interrupt') = 'never_interrupt'
         AND r.state_since < now() - make_interval(secs => coalesce((pol.settings ->> 'idle_wait_seconds')::float8, $3)) AS overdue,
       coalesce((SELECT string_agg('job ' || (j ->> 'id') || ' of ' || (j ->> 'user'), ', ') FROM jsonb_array_elements(ns.jobs) j), '') AS jobs,
       k.state AS command_state, k.result AS command_result, k.deadline_at < now() AS command_late, coalesce(n.joined_at > k.created_at, false) AS fresh,
       -- the fault itself, or another one, told in the boot that should have ended it, or since the node was back
       (SELECT i.summary FROM incident i
         WHERE i.org_id = $1 AND i.node_id = r.node_id AND {{incident_counts}} AND i.node_fault
           AND CASE WHEN l.boot_id IS DISTINCT FROM r.boot_id THEN i.boot_id = l.boot_id ELSE i.last_at > r.state_since END
         ORDER BY i.last_at DESC LIMIT 1) AS came_back,
       -- what is open and does not clear; what only a person closes is not counted
       (SELECT min('Incident ' || i.no || ' is still open: ' || i.summary) FROM incident i
         WHERE i.org_id = $1 AND i.id = ANY (r.incident_ids) AND i.closed_at IS NULL AND i.clears <> 'person'
           AND NOT {{clear_rule_holds}}) AS not_clear
  FROM repair r JOIN node n ON n.org_id = $1 AND n.id = r.node_id JOIN cluster c ON c.org_id = $1 AND c.id = r.cluster_id
  JOIN org o ON o.id = $1 LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = r.node_id
  LEFT JOIN command k ON k.org_id = $1 AND k.id = r.command_id
  LEFT JOIN cluster_scheduler sc ON sc.org_id = $1 AND sc.cluster_id = r.cluster_id
  LEFT JOIN node_scheduler ns ON ns.org_id = $1 AND ns.node_id = r.node_id
  LEFT JOIN LATERAL ({{policy_of_node}}) pol ON true
 WHERE r.org_id = $1 AND r.ended_at IS NULL AND r.state = ANY ($2::text[])
 ORDER BY r.state_since, r.id LIMIT 1000;

-- One step of a repair: compare and set, with what belongs to it. $2 repair $3 version $4 states it is possible in $5 next state
-- $6 that state is an end $7 detail, one sentence $8 deadline in seconds $9 event type $10 severity
-- $11 node: cordon, undo (give back what this repair took), uncordon, remove, or NULL $12 close incidents whose rule holds
-- $13 the command, not handed out yet, expires $14 the approval is void
-- name: repair_move
-- role: loop
WITH cur AS MATERIALIZED (
  SELECT r.id, r.no, r.cluster_id, r.node_id, r.state, r.version, r.action, r.incident_id, r.incident_ids, r.cordoned, r.command_id,
         r.plan_hash, r.comment
    FROM repair r WHERE r.org_id = $1 AND r.id = $2::uuid AND r.version = $3::bigint AND r.state = ANY ($4::text[]) FOR UPDATE SKIP LOCKED
), cmd AS (
  UPDATE command k SET state = 'expired', ended_at = now(), result = 'Not taken in time.'
    FROM cur WHERE $13::boolean AND k.org_id = $1 AND k.id = cur.command_id AND k.state = 'ready'
  RETURNING k.id
), go AS MATERIALIZED (
  SELECT cur.id FROM cur WHERE NOT $13::boolean OR EXISTS (SELECT FROM cmd)
), nd AS (
  UPDATE node n SET schedulable = $11::text NOT IN ('cordon', 'remove'), cordoned_by = CASE WHEN $11::text IN ('cordon', 'remove') THEN cur.id END,
         removed_at = CASE WHEN $11::text = 'remove' THEN now() END, version = n.version + 1, updated_at = now()
    FROM go JOIN cur ON cur.id = go.id
   WHERE n.org_id = $1 AND n.id = cur.node_id
     AND CASE $11::text WHEN 'cordon' THEN n.schedulable WHEN 'remove' THEN n.removed_at IS NULL WHEN 'undo' THEN n.cordoned_by = cur.id AND cur.cordoned AND NOT n.schedulable
                        WHEN 'uncordon' THEN n.cordoned_by IS NOT NULL AND NOT n.schedulable
                             AND NOT EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.node_id = n.id AND i.closed_at IS NULL
                                                AND i.node_fault AND NOT (i.id = ANY (cur.incident_ids) AND i.clears <> 'person'))
                        ELSE false END
  RETURNING n.id
), keys AS (
  UPDATE node_key k SET revoked_at = now() FROM nd WHERE $11::text = 'remove' AND k.org_id = $1 AND k.node_id = nd.id AND k.revoked_at IS NULL
), tokens AS (
  DELETE FROM agent_token t USING nd WHERE $11::text = 'remove' AND t.org_id = $1 AND t.node_id = nd.id
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM nd WHERE $11::text = 'remove' AND i.one
), upd AS (
  UPDATE repair r SET state = $5::text, version = r.version + 1, state_since = now(), reason = CASE WHEN $14::boolean OR $6::boolean THEN $7::text ELSE r.reason END,
         deadline_at = now() + make_interval(secs => $8::float8), ended_at = CASE WHEN $6::boolean THEN now() END,
         cordoned = r.cordoned OR ($11::text = 'cordon' AND EXISTS (SELECT FROM nd)),
         automatic = r.automatic AND NOT $14::boolean,
         first_approver = CASE WHEN NOT $14::boolean THEN r.first_approver END,
         decided_by = CASE WHEN $14::boolean THEN NULL ELSE r.decided_by END,
         decided_at = CASE WHEN $14::boolean THEN NULL ELSE r.decided_at END
    FROM go WHERE r.org_id = $1 AND r.id = go.id
  RETURNING r.id, r.version
), closed AS (
  UPDATE repair_step s SET ended_at = now() FROM upd u WHERE s.org_id = $1 AND s.repair_id = u.id AND s.ended_at IS NULL
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail, ended_at)
  SELECT $1, u.id, (SELECT coalesce(max(s.n), 0) + 1 FROM repair_step s WHERE s.org_id = $1 AND s.repair_id = u.id), $5::text, $7::text,
         CASE WHEN $6::boolean THEN now() END
    FROM upd u
), due AS MATERIALIZED (
  SELECT i.id, i.no, i.check_id, i.code, i.device, i.summary, {{clear_reason}} AS why
    FROM upd JOIN cur ON cur.id = upd.id JOIN incident i ON i.id = ANY (cur.incident_ids)
    JOIN node n ON n.org_id = $1 AND n.id = i.node_id JOIN node_latest l ON l.org_id = $1 AND l.node_id = i.node_id
   WHERE $12::boolean AND i.org_id = $1 AND i.closed_at IS NULL AND {{clear_rule_holds}}
   ORDER BY i.id FOR NO KEY UPDATE OF i
), gone AS MATERIALIZED (
  -- nothing stays open on a node that was removed
  SELECT i.id, i.no, i.check_id, i.code, i.device, i.summary, 'The node was removed.' AS why FROM upd JOIN cur ON cur.id = upd.id
    JOIN incident i ON i.org_id = $1 AND i.node_id = cur.node_id
   WHERE $11::text = 'remove' AND i.closed_at IS NULL ORDER BY i.id FOR NO KEY UPDATE OF i
), closing AS MATERIALIZED (
  SELECT id, no, check_id, code, device, summary, why FROM due UNION ALL SELECT id, no, check_id, code, device, summary, why FROM gone
), inc AS (
  UPDATE incident i SET closed_at = now(), closed_by = 'muster', version = i.version + 1,
         close_reason = 'Repaired by repair ' || cur.no || '. ' || closing.why
    FROM closing, cur WHERE i.org_id = $1 AND i.id = closing.id
  RETURNING i.id, i.close_reason
), fact AS MATERIALIZED (
  SELECT 1 AS place, $9::text AS type, $10::text AS severity, cur.incident_id,
         'Repair ' || cur.no || ' of ' || n.name || ' (' || replace(cur.action, '_', ' ') || ') '
         || CASE WHEN $14::boolean THEN 'waits for a decision again' ELSE 'is ' || $5::text END || ': ' || $7::text AS summary,
         jsonb_build_object('no', cur.no, 'action', cur.action, 'from', cur.state, 'to', $5::text, 'detail', $7::text) AS data
    FROM upd JOIN cur ON cur.id = upd.id JOIN node n ON n.org_id = $1 AND n.id = cur.node_id
  UNION ALL
  SELECT 2, CASE $11::text WHEN 'cordon' THEN 'node.cordoned' WHEN 'remove' THEN 'node.removed' ELSE 'node.uncordoned' END, 'info', NULL,
         n.name || CASE $11::text WHEN 'cordon' THEN ' takes no new work: repair ' WHEN 'remove' THEN ' was removed: repair '
                                  ELSE ' takes work again: repair ' END || cur.no, '{}'::jsonb
    FROM nd JOIN cur ON cur.node_id = nd.id JOIN node n ON n.org_id = $1 AND n.id = nd.id
  UNION ALL
  SELECT 3, 'incident.closed', 'info', t.id, 'Incident ' || t.no || ' closed: ' || t.summary,
         jsonb_build_object('no', t.no, 'check_id', t.check_id, 'code', t.code, 'device', t.device, 'reason', inc.close_reason)
    FROM inc JOIN closing t ON t.id = inc.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n, command_seq = h.command_seq + CASE WHEN $13::boolean THEN 1 ELSE 0 END
    FROM (SELECT count(*) AS n FROM fact) c WHERE h.org_id = $1 AND c.n > 0
  RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.place, f.incident_id), f.type, f.severity, cur.cluster_id, cur.node_id, f.incident_id,
         cur.id, f.summary, f.data
    FROM head, fact f, cur
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', $9::text, 'target', cur.id, 'target_name', 'repair ' || cur.no, 'outcome', 'done',
                                'before', jsonb_build_object('state', cur.state, 'version', cur.version),
                                'after', jsonb_build_object('state', $5::text, 'version', upd.version, 'detail', $7::text))::text
    FROM head, upd JOIN cur ON cur.id = upd.id
)
SELECT (SELECT u.version FROM upd u) AS version;

-- The act, at most once for a repair: the order and its number, bound to the boot the plan is about. Whoever carries it out takes it from
-- here. What must still be true is looked at once more. $2 repair $3 version $4 states it is possible in $5 id of the command
-- $6 seconds in which it must be taken $7 arguments $8 executor
-- name: repair_act
-- role: loop
WITH cur AS MATERIALIZED (
  SELECT r.id, r.no, r.cluster_id, r.node_id, r.action, r.incident_id, r.incident_ids, r.boot_id, r.requested_by, r.version, r.decided_by
    FROM repair r
   WHERE r.org_id = $1 AND r.id = $2::uuid AND r.version = $3::bigint AND r.state = ANY ($4::text[]) AND r.command_id IS NULL
     AND {{repair_stop}} IS NULL AND {{repair_idle}}
     FOR UPDATE OF r SKIP LOCKED
), go AS MATERIALIZED (
  SELECT cur.id, cur.node_id FROM cur JOIN node_latest l ON l.org_id = $1 AND l.node_id = cur.node_id
   WHERE l.boot_id = cur.boot_id
     AND (cur.requested_by <> 'muster'
          OR EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.id = ANY (cur.incident_ids) AND i.closed_at IS NULL))
), nd AS (
  UPDATE node n SET command_n = n.command_n + 1 FROM go WHERE n.org_id = $1 AND n.id = go.node_id AND n.removed_at IS NULL
  RETURNING n.id, n.name, n.command_n
), cmd AS (
  INSERT INTO command AS k (org_id, id, node_id, repair_id, epoch_generation, epoch_n, action, args, boot_id, deadline_at, executor)
  SELECT $1, $5::uuid, cur.node_id, cur.id, s.restore_generation, nd.command_n, cur.action, $7::jsonb, cur.boot_id,
         now() + make_interval(secs => $6::float8), $8::text
    FROM cur JOIN nd ON nd.id = cur.node_id CROSS JOIN installation s
  RETURNING k.id, k.epoch_generation, k.epoch_n
), upd AS (
  UPDATE repair r SET command_id = cmd.id, version = r.version + 1, deadline_at = now() + make_interval(secs => $6::float8)
    FROM cmd, cur WHERE r.org_id = $1 AND r.id = cur.id
  RETURNING r.id, r.version
), step AS (
  UPDATE repair_step s SET detail = 'Ordered the ' || CASE $8::text WHEN 'agent' THEN 'agent' WHEN 'ironic' THEN 'provisioner' WHEN 'webhook' THEN 'operator''s automation' ELSE 'machine' END || ' to ' || replace(cur.action, '_', ' ') || '; waiting for it to take the order.'
    FROM upd JOIN cur ON cur.id = upd.id WHERE s.org_id = $1 AND s.repair_id = upd.id AND s.ended_at IS NULL
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, command_seq = h.command_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.event_seq, 'repair.step', cur.cluster_id, cur.node_id, cur.incident_id, cur.id,
         'Repair ' || cur.no || CASE $8::text WHEN 'agent' THEN ': the agent of ' WHEN 'ironic' THEN ': the provisioner of ' WHEN 'webhook' THEN ': the automation of ' ELSE ': the controller of ' END || nd.name || ' is ordered to ' || replace(cur.action, '_', ' '),
         jsonb_build_object('no', cur.no, 'action', cur.action, 'command_id', cmd.id, 'epoch', jsonb_build_array(cmd.epoch_generation, cmd.epoch_n))
    FROM head, cur, nd, cmd
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', 'command.create', 'target', cmd.id, 'target_name', nd.name, 'outcome', 'done',
                                'before', NULL,
                                'after', jsonb_build_object('repair', cur.no, 'action', cur.action, 'args', $7::jsonb, 'boot_id', cur.boot_id,
                                    'approved_by', cur.decided_by, 'epoch', jsonb_build_array(cmd.epoch_generation, cmd.epoch_n)))::text
    FROM head, cur, nd, cmd
)
SELECT (SELECT u.version FROM upd u) AS version, EXISTS (SELECT FROM cur) AS mine;

-- The devices a reset is about.
-- name: repair_devices
-- role: loop
SELECT DISTINCT i.device FROM repair r JOIN incident i ON i.org_id = r.org_id AND i.id = ANY (r.incident_ids)
 WHERE r.org_id = $1 AND r.id = $2::uuid AND i.device ~ '^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}' AND i.closed_at IS NULL ORDER BY i.device;
