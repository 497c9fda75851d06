-- What the background loops derive from readings, incidents and repairs. Each is idempotent: any replica may run it at any time.
-- Order of locks: things (sorted) -> incidents -> org_head.

-- Every org, for loops that look at all of them.
-- name: org_list_all
-- role: loop
-- scope: global
SELECT h.org_id FROM org_head h ORDER BY h.org_id;

-- Two machines that use one key are both stopped: nobody can tell which is the right one. Its key and tokens end, a person is told what
-- to do, and a new generation by a join token lets one in again.
-- name: node_stop_copied
-- role: loop
WITH due AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name, n.key_generation, l.boot_id, l.old_boots[1] AS other
    FROM node_latest l JOIN node n ON n.org_id = l.org_id AND n.id = l.node_id
   WHERE l.org_id = $1 AND l.strikes >= 2 AND n.removed_at IS NULL AND n.key_stopped_at IS NULL
   ORDER BY n.id LIMIT 100 FOR NO KEY UPDATE OF n SKIP LOCKED
), key AS (
  UPDATE node_key k SET revoked_at = now() FROM due d WHERE k.org_id = $1 AND k.node_id = d.id AND k.revoked_at IS NULL
), tokens AS (
  DELETE FROM agent_token t USING due d WHERE t.org_id = $1 AND t.node_id = d.id
), upd AS (
  UPDATE node n SET key_stopped_at = now(), version = n.version + 1, updated_at = now()
    FROM due d WHERE n.org_id = $1 AND n.id = d.id RETURNING n.id
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 WHERE i.one AND EXISTS (SELECT FROM upd)
), old AS MATERIALIZED (
  SELECT i.id, i.node_id FROM incident i JOIN due d ON d.id = i.node_id
   WHERE i.org_id = $1 AND i.device = '' AND i.check_id = 'node_key' AND i.code = 'copied' AND i.closed_at IS NULL FOR NO KEY UPDATE OF i
), again AS (
  UPDATE incident i SET count = i.count + 1, last_at = now(), version = i.version + 1 FROM old WHERE i.org_id = $1 AND i.id = old.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 2 * c.n, last_no = h.last_no + c.n FROM (SELECT count(*) AS n FROM upd) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - 2 * c.n AS seq_base, h.last_no - c.n AS no_base
), told AS MATERIALIZED (
  SELECT d.id, d.cluster_id, d.name, d.key_generation, d.boot_id, d.other, row_number() OVER (ORDER BY d.id) AS place,
         head.seq_base, head.no_base, coalesce(old.id, gen_random_uuid()) AS incident_id, old.id IS NULL AS opens,
         'Two machines use the key of ' || d.name || '; both were stopped. Find the copy; then empty the state folder of the right machine'
         || ' and give it a join token.' AS summary
    FROM head, due d JOIN upd ON upd.id = d.id LEFT JOIN old ON old.node_id = d.id
), opened AS (
  INSERT INTO incident (org_id, id, no, cluster_id, node_id, check_id, code, severity, clears, boot_id, summary, evidence, first_at, last_at)
  SELECT $1, t.incident_id, t.no_base + t.place, t.cluster_id, t.id, 'node_key', 'copied', 'critical', 'person', t.boot_id, t.summary,
         jsonb_build_array(jsonb_build_object('at', now(), 'source', 'muster', 'opened', true,
                                              'text', 'Reports came in turn from boot ' || t.boot_id || ' and boot ' || t.other || '.')),
         now(), now()
    FROM told t WHERE t.opens
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, summary, data)
  SELECT $1, t.seq_base + 2 * t.place - 1, 'node.key_stopped', 'critical', t.cluster_id, t.id, t.incident_id, t.summary,
         jsonb_build_object('generation', t.key_generation, 'boot_id', t.boot_id, 'other_boot_id', t.other) FROM told t
  UNION ALL
  SELECT $1, t.seq_base + 2 * t.place, CASE WHEN t.opens THEN 'incident.opened' ELSE 'incident.changed' END, 'critical', t.cluster_id, t.id,
         t.incident_id, t.summary, jsonb_build_object('check_id', 'node_key', 'code', 'copied', 'device', '', 'node_fault', false) FROM told t
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', 'muster', 'credential', NULL, 'action', 'node.stop_key', 'target', t.id, 'target_name', t.name,
                               'outcome', 'done', 'before', NULL,
                               'after', json_build_object('generation', t.key_generation, 'boot_id', t.boot_id, 'other_boot_id', t.other))::text
    FROM told t
)
SELECT (SELECT count(*) FROM upd) AS changed;

-- The one rule of a node's state. $2 silence changes nothing yet (just started) $3 repair states in which a node shows as repairing
-- $4 checks that are no fault so soon after a boot or a new driver $5 how many seconds
-- The first that holds: paused, repairing, pending, unknown (silent), starting, unhealthy, healthy. A warning is a mark beside it.
-- name: node_derive
-- role: loop
WITH inc AS MATERIALIZED (
  SELECT i.node_id, bool_or(i.node_fault AND NOT i.early) AS fault,
         bool_or((NOT i.node_fault OR i.early) AND i.severity <> 'info') AS warning,
         (array_agg(i.summary ORDER BY i.node_fault AND NOT i.early DESC, i.severity = 'critical' DESC, i.severity = 'warning' DESC,
                    i.root_id IS NULL DESC, i.first_at, i.id))[1] AS summary,
         (array_agg(i.id ORDER BY i.node_fault AND NOT i.early DESC, i.severity = 'critical' DESC, i.severity = 'warning' DESC,
                    i.root_id IS NULL DESC, i.first_at, i.id))[1] AS incident_id
    FROM (SELECT i.node_id, i.node_fault, i.severity, i.summary, i.id, i.first_at, i.root_id,
                 i.check_id = ANY ($4::text[]) AND coalesce({{node_in_grace}} > now() - make_interval(secs => $5::float8), false) AS early
            FROM incident i JOIN node n ON n.org_id = i.org_id AND n.id = i.node_id
           WHERE i.org_id = $1 AND {{incident_counts}}) i
   GROUP BY i.node_id
), work AS MATERIALIZED (
  SELECT r.node_id, r.id, 'Repair ' || r.no || ': ' || replace(r.action, '_', ' ') || ', ' || r.state || '.' AS reason
    FROM repair r WHERE r.org_id = $1 AND r.ended_at IS NULL AND r.state = ANY ($3::text[])
), look AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name, n.state AS was, n.reason AS reason_was, n.warning AS warning_was, n.boot_id AS boot_was,
         n.ready_at AS ready_was, n.booted_at, n.paused_until, n.paused_by, n.joined_at, n.key_stopped_at, n.paused_until > now() AS paused,
         coalesce(l.boot_id, n.boot_id) AS boot_id, l.boot_id IS NOT NULL AND l.ready AS ready, l.seen_at,
         l.seen_at < now() - make_interval(secs => 3 * n.interval_seconds) AS silent,
         coalesce(inc.fault, false) AS fault, coalesce(inc.warning, false) AS warning, inc.summary, inc.incident_id,
         work.id AS repair_id, work.reason AS repair_reason
    FROM node n LEFT JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
    LEFT JOIN inc ON inc.node_id = n.id LEFT JOIN work ON work.node_id = n.id
   WHERE n.org_id = $1 AND n.removed_at IS NULL
), cut AS MATERIALIZED (
  SELECT k.cluster_id FROM look k WHERE k.seen_at IS NOT NULL AND k.paused IS NOT TRUE
   GROUP BY k.cluster_id HAVING count(*) > 1 AND count(*) FILTER (WHERE k.silent) >= 0.9 * count(*)
), want AS (
  SELECT k.id, k.cluster_id, k.name, k.was, k.reason_was, k.warning_was, k.boot_was, k.ready_was, k.booted_at, k.boot_id, k.ready,
         k.warning, k.incident_id, k.repair_id,
         CASE WHEN k.paused THEN 'paused' WHEN k.repair_id IS NOT NULL THEN 'repairing' WHEN k.key_stopped_at IS NOT NULL THEN 'unknown'
              WHEN k.seen_at IS NULL THEN 'pending'
              WHEN k.silent AND $2::boolean AND k.was NOT IN ('paused', 'repairing') THEN k.was
              WHEN k.silent THEN 'unknown' WHEN NOT k.ready THEN 'starting' WHEN k.fault THEN 'unhealthy' ELSE 'healthy' END AS state,
         CASE WHEN k.paused THEN 'In maintenance until ' || to_char(k.paused_until, 'YYYY-MM-DD HH24:MI') || ' UTC'
                                 || coalesce(', by ' || k.paused_by, '') || '.'
              WHEN k.repair_id IS NOT NULL THEN k.repair_reason
              WHEN k.key_stopped_at IS NOT NULL
              THEN 'Two machines used this node''s key, so both were stopped at ' || to_char(k.key_stopped_at, 'YYYY-MM-DD HH24:MI:SS')
                   || ' UTC. Find the copy; then empty the state folder of the right machine and give it a join token.'
              WHEN k.seen_at IS NULL AND k.joined_at IS NULL THEN 'Waiting for its agent to join.'
              WHEN k.seen_at IS NULL THEN 'Joined; waiting for its first report.'
              WHEN k.silent AND $2::boolean AND k.was NOT IN ('paused', 'repairing') THEN k.reason_was
              WHEN k.silent AND cut.cluster_id IS NOT NULL
              THEN 'Nearly every node of this cluster fell silent together, so Muster takes itself to be cut off. Last heard at '
                   || to_char(k.seen_at, 'YYYY-MM-DD HH24:MI:SS') || ' UTC.'
              WHEN k.silent THEN 'Last heard at ' || to_char(k.seen_at, 'YYYY-MM-DD HH24:MI:SS') || ' UTC.'
              WHEN NOT k.ready THEN 'Its agent has not finished its first round of readings.'
              WHEN k.fault OR k.warning THEN k.summary ELSE '' END AS reason
    FROM look k LEFT JOIN cut ON cut.cluster_id = k.cluster_id
), diff AS MATERIALIZED (
  SELECT w.id, w.cluster_id, w.name, w.was, w.state, w.reason, w.warning, w.boot_was, w.boot_id, w.ready, w.ready_was, w.booted_at,
         w.incident_id, w.repair_id, w.state <> w.was AS moved, w.boot_id IS DISTINCT FROM w.boot_was AS rebooted
    FROM want w
   WHERE w.state <> w.was OR w.reason <> w.reason_was OR w.warning <> w.warning_was OR w.boot_id IS DISTINCT FROM w.boot_was
      OR (w.ready AND w.ready_was IS NULL)
   LIMIT 1000 -- the planner takes what follows for a few rows and joins them row by row; the loop comes again
), lk AS MATERIALIZED (
  SELECT n.id FROM diff d JOIN node n ON n.id = d.id
   WHERE n.org_id = $1 AND n.state = d.was AND n.boot_id IS NOT DISTINCT FROM d.boot_was ORDER BY n.id FOR NO KEY UPDATE OF n
), upd AS (
  UPDATE node n
     SET state = d.state, reason = d.reason, warning = d.warning, state_since = CASE WHEN d.moved THEN now() ELSE n.state_since END,
         boot_id = d.boot_id, ready_at = CASE WHEN d.ready AND (d.rebooted OR n.ready_at IS NULL) THEN now()
                                              WHEN d.rebooted THEN NULL ELSE n.ready_at END,
         -- the inventory's own boot time where it is already that of this boot
         booted_at = CASE WHEN NOT d.rebooted OR n.booted_at > d.ready_was THEN n.booted_at ELSE now() END,
         version = n.version + 1, updated_at = now()
    FROM lk JOIN diff d ON d.id = lk.id WHERE n.org_id = $1 AND n.id = lk.id
  RETURNING n.id
), done AS MATERIALIZED (
  SELECT d.id, d.cluster_id, d.name, d.was, d.state, d.reason, d.boot_was, d.boot_id, d.incident_id, d.repair_id, d.moved, d.rebooted
    FROM upd JOIN diff d ON d.id = upd.id
), tr AS (
  INSERT INTO node_transition (org_id, cluster_id, node_id, at, state, reason)
  SELECT $1, d.cluster_id, d.id, now(), d.state, d.reason FROM done d WHERE d.moved
), fact AS MATERIALIZED (
  SELECT 1 AS place, d.id, d.cluster_id, 'node.booted' AS type, 'info' AS severity, NULL::uuid AS incident_id, NULL::uuid AS repair_id,
         d.name || ' booted' AS summary, jsonb_build_object('boot_id', d.boot_id, 'boot_id_before', d.boot_was) AS data
    FROM done d WHERE d.rebooted AND d.boot_was IS NOT NULL
  UNION ALL
  SELECT 2, d.id, d.cluster_id, 'node.state_changed',
         CASE d.state WHEN 'unhealthy' THEN 'critical' WHEN 'unknown' THEN 'warning' ELSE 'info' END,
         CASE WHEN d.state = 'unhealthy' THEN d.incident_id END, CASE WHEN d.state = 'repairing' THEN d.repair_id END,
         d.name || ' is ' || d.state || coalesce(': ' || nullif(d.reason, ''), ''),
         jsonb_build_object('from', d.was, 'to', d.state, 'reason', d.reason)
    FROM done d WHERE d.moved
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM fact) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.id, f.place), f.type, f.severity, f.cluster_id, f.id, f.incident_id, f.repair_id,
         f.summary, f.data
    FROM head, fact f
)
SELECT (SELECT count(*) FROM done) AS changed, (SELECT count(*) FROM done d WHERE d.moved) AS moved, (SELECT count(*) FROM cut) AS cut_off;

-- An incident's clear rule holds, by what is known of its node. i incident, l node_latest, n node.
-- new_boot: another boot, whose first round is over, with no event in it (an event would have moved i.boot_id).
-- quiet: no event for the agreed time, while we could hear one. event and person are closed by others.
-- fragment: clear_rule_holds
CASE i.clears
  WHEN 'new_boot' THEN i.boot_id IS NOT NULL AND l.boot_id IS NOT NULL AND l.boot_id <> i.boot_id AND l.ready
  WHEN 'quiet' THEN i.quiet_seconds > 0 AND i.last_at < now() - make_interval(secs => i.quiet_seconds)
                    AND l.ready AND l.seen_at > now() - make_interval(secs => 3 * n.interval_seconds)
  ELSE false END

-- fragment: clear_reason
CASE i.clears WHEN 'new_boot' THEN 'The node booted again and the fault did not come back.'
              ELSE 'No new event for ' || i.quiet_seconds || ' s.' END

-- Closes what clears by itself. $2 repair states that close their incidents themselves, after verifying.
-- name: incident_close_due
-- role: loop
WITH due AS MATERIALIZED (
  SELECT i.id, i.cluster_id, i.node_id, i.no, i.check_id, i.code, i.device, n.name, i.summary, {{clear_reason}} AS reason
    FROM incident i JOIN node n ON n.org_id = i.org_id AND n.id = i.node_id
    JOIN node_latest l ON l.org_id = i.org_id AND l.node_id = i.node_id
   WHERE i.org_id = $1 AND i.closed_at IS NULL AND i.clears IN ('new_boot', 'quiet') AND {{clear_rule_holds}}
     AND NOT EXISTS (SELECT FROM repair r WHERE r.org_id = $1 AND r.node_id = i.node_id AND r.ended_at IS NULL
                                            AND r.state = ANY ($2::text[]))
   ORDER BY i.id LIMIT 1000 FOR NO KEY UPDATE OF i SKIP LOCKED
), upd AS (
  UPDATE incident i SET closed_at = now(), close_reason = d.reason, closed_by = 'muster', version = i.version + 1
    FROM due d WHERE i.org_id = $1 AND i.id = d.id RETURNING i.id
), fact AS MATERIALIZED (
  SELECT d.id, d.cluster_id, d.node_id, d.no, d.check_id, d.code, d.device, d.summary, d.reason FROM upd JOIN due d ON d.id = upd.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM fact) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.id), 'incident.closed', f.cluster_id, f.node_id, f.id,
         'Incident ' || f.no || ' closed: ' || f.summary,
         jsonb_build_object('no', f.no, 'check_id', f.check_id, 'code', f.code, 'device', f.device, 'reason', f.reason)
    FROM head, fact f
)
SELECT (SELECT count(*) FROM fact) AS closed;

-- Puts nodes back that a repair took out of scheduling, once nothing is open any more. A person's cordon is never touched.
-- name: node_uncordon_due
-- role: loop
WITH due AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name, n.cordoned_by FROM node n
   WHERE n.org_id = $1 AND n.removed_at IS NULL AND NOT n.schedulable AND n.cordoned_by IS NOT NULL
     AND NOT EXISTS (SELECT FROM repair r WHERE r.org_id = $1 AND r.node_id = n.id AND r.ended_at IS NULL)
     AND NOT EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.node_id = n.id AND {{incident_counts}} AND i.node_fault)
   ORDER BY n.id LIMIT 1000 FOR NO KEY UPDATE OF n SKIP LOCKED
), upd AS (
  UPDATE node n SET schedulable = true, cordoned_by = NULL, version = n.version + 1, updated_at = now()
    FROM due d WHERE n.org_id = $1 AND n.id = d.id RETURNING n.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM upd) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, repair_id, summary)
  SELECT $1, head.base + row_number() OVER (ORDER BY d.id), 'node.uncordoned', d.cluster_id, d.id, d.cordoned_by,
         d.name || ' takes work again: what it was taken out for has ended'
    FROM head, due d JOIN upd ON upd.id = d.id
)
SELECT (SELECT count(*) FROM upd) AS uncordoned;
