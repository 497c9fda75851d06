-- Repairs as people see and decide them. Names of states come as parameters from server/repair/fsm.c wherever one is written.

-- fragment: repair_fields
r.id, r.no, r.cluster_id, r.node_id, (SELECT n.name FROM node n WHERE n.org_id = r.org_id AND n.id = r.node_id) AS node_name,
r.incident_id, r.action, r.state, r.state_since, r.deadline_at, r.reason, r.requested_by, r.decided_by, r.decided_at, r.comment, r.plan,
r.plan_hash, r.attempt, r.created_at, r.ended_at, r.version, r.automatic, r.why_not, r.would_at, r.first_approver, r.batch_id, r.wave

-- fragment: repair_blocked
CASE WHEN r.state <> 'proposed' THEN 'Only a proposed repair can be approved; this one is ' || r.state || '.'
     WHEN r.executor IS NULL
     THEN 'Nothing here can carry out ' || replace(r.action, '_', ' ') || '. Do it by hand, then close the incident.'
     WHEN EXISTS (SELECT FROM node n WHERE n.org_id = r.org_id AND n.id = r.node_id AND n.joined_at IS NULL)
     THEN 'No agent has joined from this node, so nothing can carry it out.'
     WHEN r.action = 'failover' AND NOT EXISTS (SELECT FROM spare s WHERE s.org_id = r.org_id AND s.cluster_id = r.cluster_id AND s.state = 'available')
     THEN 'No spare is left in this cluster''s pool. Add one, or repair the node in another way.'
     WHEN {{repair_stop}} IS NOT NULL THEN 'A person stopped repairs ' || {{stop_words}} || '.' END

-- Where a person stopped repairs, for repair r: platform, org (also when it is suspended), cluster, node; NULL = nowhere.
-- fragment: repair_stop
coalesce((SELECT 'platform' FROM installation s WHERE s.repairs_stopped_at IS NOT NULL),
         (SELECT 'org' FROM org o WHERE o.id = r.org_id AND o.suspended_at IS NOT NULL),
         (SELECT g.reach FROM repair_guard g WHERE g.org_id = r.org_id AND g.target_id IN (r.org_id, r.cluster_id, r.node_id) AND g.stopped_at IS NOT NULL
           ORDER BY g.reach = 'org' DESC, g.reach = 'cluster' DESC LIMIT 1))

-- fragment: stop_words
CASE {{repair_stop}} WHEN 'platform' THEN 'everywhere' WHEN 'org' THEN 'in this organization' WHEN 'cluster' THEN 'in this cluster' ELSE 'on this node' END

-- fragment: repair_steps
(SELECT coalesce(json_agg(t ORDER BY t.n), '[]'::json)
   FROM (SELECT s.n, s.state, s.detail, s.actor, s.started_at, s.ended_at FROM repair_step s
          WHERE s.org_id = r.org_id AND s.repair_id = r.id) t)

-- fragment: repair_json_fields
{{repair_fields}}, {{repair_steps}} AS steps, {{repair_blocked}} IS NULL AS can_approve, {{repair_blocked}} AS blocked

-- Which policy counts for repair r, as a text: a plan is bound to it.
-- fragment: policy_tag
coalesce((SELECT p.id || ' ' || p.version FROM policy p
           WHERE p.org_id = r.org_id AND (p.node_id = r.node_id OR (p.node_id IS NULL AND (p.cluster_id = r.cluster_id OR p.cluster_id IS NULL)))
           ORDER BY p.node_id IS NULL, p.cluster_id IS NULL LIMIT 1), 'default')

-- Whether the policy wants two people for repair r.
-- fragment: policy_wants_two
coalesce((SELECT p.settings -> 'second_approver' @> to_jsonb(r.action) FROM policy p
           WHERE p.org_id = r.org_id AND (p.node_id = r.node_id OR (p.node_id IS NULL AND (p.cluster_id = r.cluster_id OR p.cluster_id IS NULL)))
           ORDER BY p.node_id IS NULL, p.cluster_id IS NULL LIMIT 1), false)

-- The answer of a decision: without what only the telling needs.
-- fragment: decided_json
(to_jsonb(f) - 'type' - 'participle')::text

-- What the plan is about is still so. r repair, c cluster, l node_latest.
-- fragment: repair_plan_holds
(l.boot_id IS NOT DISTINCT FROM r.boot_id
 AND r.incident_ids = (SELECT coalesce(array_agg(i.id ORDER BY i.id), '{}') FROM incident i
                        WHERE i.org_id = r.org_id AND i.node_id = r.node_id AND {{incident_counts}} AND i.node_fault
                          AND {{incident_action}} <> 'none')
 AND r.plan -> 'policy' = jsonb_build_object('healthy_delay_seconds', c.healthy_delay_seconds, 'begin_within_seconds', c.begin_within_seconds,
                                             'rejoin_within_seconds', c.rejoin_within_seconds, 'version', {{policy_tag}}))

-- name: repair_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{repair_json_fields}} FROM repair r WHERE r.org_id = $1 AND r.id = $2::uuid) t ON true;

-- $2 cluster $3 node $4 states $5 open or ended $6 since $7 until $8 limit $9 cursor: the id of the last row.
-- fragment: repair_page
SELECT {{repair_json_fields}} FROM repair r
 WHERE r.org_id = $1 AND ($2::uuid IS NULL OR r.cluster_id = $2) AND ($3::uuid IS NULL OR r.node_id = $3)
   AND ($4::text[] IS NULL OR r.state = ANY ($4)) AND ($5::boolean IS NULL OR (r.ended_at IS NULL) = $5)
   AND ($6::timestamptz IS NULL OR r.created_at >= $6) AND ($7::timestamptz IS NULL OR r.created_at < $7)
   AND ($9::text IS NULL OR (r.created_at, r.id) < (SELECT o.created_at, o.id FROM repair o
        WHERE o.org_id = $1 AND o.id = CASE WHEN $9 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $9::uuid END))
 ORDER BY r.created_at DESC, r.id DESC LIMIT $8::int + 1

-- fragment: repair_page_reply
(SELECT CASE WHEN count(*) > $8::int THEN (array_agg(p.id::text ORDER BY p.created_at DESC, p.id DESC))[$8::int] END FROM page p) AS next,
(SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.created_at DESC, t.id DESC), '],"as_of_seq":', h.event_seq, '}')
   FROM (SELECT p.* FROM page p ORDER BY p.created_at DESC, p.id DESC LIMIT $8::int) t) AS body

-- name: repair_list
WITH page AS MATERIALIZED ({{repair_page}})
SELECT 200 AS status, h.event_seq + h.rollup_version AS version, {{repair_page_reply}} FROM org_head h WHERE h.org_id = $1;

-- name: repair_list_cluster
WITH page AS MATERIALIZED ({{repair_page}})
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2) THEN 200 ELSE 404 END AS status,
       h.event_seq + h.rollup_version AS version, {{repair_page_reply}} FROM org_head h WHERE h.org_id = $1;

-- A person decides: approve, reject, cancel, settle. One statement: compare and set, step, event, idempotency and audit.
-- $2 repair $3 key $4 fingerprint $5 actor $6 context $7 comment $8 states it is possible in $9 next state $10 that state is an end
-- $11 event type $12 what was done, as a participle $13 plan hash the person saw, NULL = no approval $14 actions with an executor
-- $15 undo our cordon $16 only say what would happen
-- name: repair_decide
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT r.org_id, r.id, r.no, r.cluster_id, r.node_id, r.state, r.version, r.plan_hash, r.plan, r.action, r.boot_id, r.incident_ids,
         r.cordoned, r.requested_by, r.first_approver, r.executor, {{policy_wants_two}} AS wants_two
    FROM repair r WHERE r.org_id = $1 AND r.id = $2::uuid FOR UPDATE
), verdict AS MATERIALIZED (
  SELECT CASE WHEN r.state <> ALL ($8::text[]) THEN 'state' WHEN $13::text IS NULL THEN 'ok'
              WHEN r.plan_hash <> $13::text OR NOT {{repair_plan_holds}} THEN 'plan'
              WHEN r.executor IS NULL OR (r.executor = 'agent' AND r.action <> ALL ($14::text[])) THEN 'executor' WHEN n.joined_at IS NULL THEN 'agent'
              WHEN r.action = 'failover' AND NOT EXISTS (SELECT FROM spare s WHERE s.org_id = $1 AND s.cluster_id = r.cluster_id AND s.state = 'available')
              THEN 'spare' WHEN {{repair_stop}} IS NOT NULL THEN 'stopped'
              WHEN NOT r.wants_two THEN 'ok' WHEN r.requested_by = $5::text THEN 'requester' WHEN r.first_approver IS NULL THEN 'first'
              WHEN r.first_approver = $5::text THEN 'same' ELSE 'ok' END AS word
    FROM cur r JOIN cluster c ON c.org_id = $1 AND c.id = r.cluster_id JOIN node n ON n.org_id = $1 AND n.id = r.node_id
    LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = r.node_id
), act AS (
  UPDATE repair r
     SET state = $9::text, version = r.version + 1, state_since = now(), ended_at = CASE WHEN $10::boolean THEN now() END,
         deadline_at = CASE WHEN $13::text IS NOT NULL
                            THEN now() + make_interval(secs => (r.plan -> 'policy' ->> 'begin_within_seconds')::float8) END,
         decided_by = CASE WHEN r.decided_by IS NULL OR cur.state = 'proposed' THEN $5::text ELSE r.decided_by END,
         decided_at = CASE WHEN r.decided_by IS NULL OR cur.state = 'proposed' THEN now() ELSE r.decided_at END,
         comment = coalesce($7::text, r.comment),
         reason = CASE WHEN $10::boolean THEN initcap($12::text) || ' by ' || $5::text || coalesce(': ' || nullif($7::text, ''), '.')
                       ELSE r.reason END
    FROM cur, verdict v WHERE r.org_id = $1 AND r.id = cur.id AND v.word = 'ok' AND NOT EXISTS (SELECT FROM seen) AND NOT $16::boolean
  RETURNING {{repair_fields}}, {{repair_blocked}} AS blocked
), first AS (
  -- two people are asked for, and this is the first
  UPDATE repair r SET first_approver = $5::text, version = r.version + 1, comment = coalesce($7::text, r.comment)
    FROM cur, verdict v WHERE r.org_id = $1 AND r.id = cur.id AND v.word = 'first' AND NOT EXISTS (SELECT FROM seen) AND NOT $16::boolean
  RETURNING {{repair_fields}}, {{repair_blocked}} AS blocked
), counted AS (
  UPDATE repair_guard g SET starts = g.starts + 1 FROM act a WHERE $13::text IS NOT NULL AND g.org_id = $1 AND g.target_id = a.cluster_id
), told AS MATERIALIZED (
  SELECT a.*, $11::text AS type, $12::text AS participle FROM act a
  UNION ALL SELECT f.*, 'repair.first_approved', 'approved as the first of two people' FROM first f
), nd AS (
  UPDATE node n SET schedulable = true, cordoned_by = NULL, version = n.version + 1, updated_at = now()
    FROM act a, cur WHERE $15::boolean AND n.org_id = $1 AND n.id = a.node_id AND n.cordoned_by = a.id AND cur.cordoned AND NOT n.schedulable
  RETURNING n.id
), past AS MATERIALIZED (
  SELECT s.n, s.state, s.detail, s.actor, s.started_at, coalesce(s.ended_at, now()) AS ended_at
    FROM told a JOIN repair_step s ON s.org_id = $1 AND s.repair_id = a.id
), closed AS (
  UPDATE repair_step s SET ended_at = now() FROM told a WHERE s.org_id = $1 AND s.repair_id = a.id AND s.ended_at IS NULL
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail, actor, ended_at)
  SELECT $1, a.id, (SELECT coalesce(max(p.n), 0) + 1 FROM past p), a.state,
         upper(left(a.participle, 1)) || substr(a.participle, 2) || ' by ' || $5::text || coalesce(': ' || nullif($7::text, ''), '.'), $5::text, a.ended_at
    FROM told a
  RETURNING n, state, detail, actor, started_at, ended_at
), full_row AS MATERIALIZED (
  SELECT a.*, (SELECT json_agg(t ORDER BY t.n)
            FROM (SELECT p.n, p.state, p.detail, p.actor, p.started_at, p.ended_at FROM past p
                  UNION ALL SELECT s.n, s.state, s.detail, s.actor, s.started_at, s.ended_at FROM step s) t) AS steps,
         a.blocked IS NULL AS can_approve
    FROM told a
), fact AS MATERIALIZED (
  SELECT 1 AS place, f.type,
         'Repair ' || f.no || ' of ' || f.node_name || ' (' || replace(f.action, '_', ' ') || ') was ' || f.participle || ' by ' || $5::text
         || coalesce(': ' || nullif($7::text, ''), '') AS summary,
         jsonb_build_object('no', f.no, 'action', f.action, 'from', cur.state, 'to', f.state, 'comment', $7::text) AS data
    FROM full_row f, cur
  UNION ALL
  SELECT 2, 'node.uncordoned', f.node_name || ' takes work again: repair ' || f.no || ' was ' || $12::text, '{}'::jsonb FROM full_row f, nd
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM fact) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, actor, summary, data)
  SELECT $1, head.base + t.place, t.type, f.cluster_id, f.node_id, f.incident_id, f.id, $5::text, t.summary, t.data
    FROM head, fact t, full_row f
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, {{decided_json}} FROM head, full_row f WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', f.type, 'target', f.id, 'target_name', 'repair ' || f.no,
                 'outcome', 'done', 'before', jsonb_build_object('state', cur.state, 'version', cur.version),
                 'after', jsonb_build_object('state', f.state, 'version', f.version, 'node', f.node_name, 'action', f.action,
                                             'plan_hash', f.plan_hash, 'comment', $7::text)))::text
    FROM head, full_row f, cur
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN f.id IS NOT NULL THEN 200
            WHEN $16::boolean AND v.word IN ('ok', 'first') THEN 200 WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' WHEN s.status IS NULL AND v.word = 'plan' THEN 'plan_changed' END AS problem,
       CASE WHEN s.status IS NOT NULL OR f.id IS NOT NULL THEN NULL
            WHEN v.word = 'plan' THEN 'The plan changed since you saw it. Read the repair again and decide on the new plan.'
            WHEN v.word = 'executor' THEN 'Nothing here can carry out ' || replace(c.action, '_', ' ') || '. Do it by hand, then close the incident.'
            WHEN v.word = 'agent' THEN 'No agent has joined from this node, so nothing can carry it out.'
            WHEN v.word = 'spare' THEN 'No spare is left in this cluster''s pool. Add one, or repair the node in another way.'
            WHEN v.word = 'stopped' THEN 'A person stopped repairs here. Allow them again first.'
            WHEN v.word = 'requester' THEN 'You asked for this repair, and the policy wants two others to approve it.'
            WHEN v.word = 'same' THEN 'You approved this repair already. The policy wants a second person.'
            WHEN v.word = 'state' THEN 'This repair is ' || c.state || ', so it cannot be ' || $12::text || '.' END AS detail,
       c.state, s.status IS NOT NULL AS replayed,
       coalesce(f.version, (s.body::json ->> 'version')::bigint, c.version) AS version,
       coalesce({{decided_json}}, s.body,
                CASE WHEN $16::boolean AND v.word IN ('ok', 'first')
                     THEN (SELECT row_to_json(t)::text FROM (SELECT {{repair_json_fields}} FROM repair r WHERE r.org_id = $1 AND r.id = $2::uuid) t) END) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN verdict v ON true LEFT JOIN full_row f ON true;

-- Facts that a plan is made of, for these nodes. $2 nodes $3 actions in the order of their weight $4 states that count against the limit
-- $5 states of attempts $6 failed state $7 succeeded state
-- name: repair_facts
-- role: app, loop
WITH want AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name, n.rack, n.leaf, n.role, n.state, n.auto_repair, n.joined_at, l.boot_id,
         coalesce(l.seen_at < now() - make_interval(secs => 3 * n.interval_seconds), true) AS silent
    FROM node n LEFT JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
   WHERE n.org_id = $1 AND n.id = ANY ($2::uuid[]) AND n.removed_at IS NULL
), bound AS MATERIALIZED (
  SELECT i.id, i.no, i.node_id, i.device, i.check_id, i.code, i.severity, i.summary, i.evidence, i.count, i.first_at, i.root_id,
         {{incident_held}} AS held, array_position($3::text[], {{incident_action}}) AS weight
    FROM incident i
   WHERE i.org_id = $1 AND i.node_id = ANY ($2::uuid[]) AND {{incident_counts}} AND i.node_fault AND {{incident_action}} <> 'none'
), inc AS MATERIALIZED (
  SELECT b.node_id, array_agg(b.id ORDER BY b.id) AS ids, max(b.weight) AS weight, min(b.first_at) AS first_at,
         bool_or(b.held) AS held,
         (array_agg(b.id ORDER BY b.weight DESC, b.root_id IS NULL DESC, b.severity = 'critical' DESC, b.first_at, b.id))[1] AS main_id,
         (array_agg(b.check_id ORDER BY b.weight DESC, b.root_id IS NULL DESC, b.severity = 'critical' DESC, b.first_at, b.id))[1] AS check_id,
         (array_agg(b.code ORDER BY b.weight DESC, b.root_id IS NULL DESC, b.severity = 'critical' DESC, b.first_at, b.id))[1] AS code,
         (array_agg(b.id ORDER BY b.id))[1] AS oldest_id,
         (array_agg(b.summary ORDER BY b.weight DESC, b.root_id IS NULL DESC, b.severity = 'critical' DESC, b.first_at, b.id))[1] AS summary,
         json_agg(json_build_object('incident_id', b.id, 'no', b.no, 'check_id', b.check_id, 'code', b.code, 'device', b.device,
                                    'summary', b.summary, 'first_at', b.first_at, 'count', b.count, 'lines', b.evidence)
                  ORDER BY b.weight DESC, b.root_id IS NULL DESC, b.severity = 'critical' DESC, b.first_at, b.id) AS evidence
    FROM bound b GROUP BY b.node_id
), size AS MATERIALIZED (
  SELECT n.cluster_id, count(*) AS nodes, count(*) FILTER (WHERE n.state = 'healthy') AS healthy,
         count(*) FILTER (WHERE n.state IN ('unhealthy', 'repairing') OR r.state = ANY ($4::text[])) AS down,
         count(l.seen_at) AS seen, count(*) FILTER (WHERE l.seen_at < now() - make_interval(secs => 3 * n.interval_seconds)) AS silent
    FROM node n LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id
    LEFT JOIN repair r ON r.org_id = $1 AND r.node_id = n.id AND r.ended_at IS NULL
   WHERE n.org_id = $1 AND n.removed_at IS NULL AND n.cluster_id IN (SELECT w.cluster_id FROM want w) GROUP BY n.cluster_id
), busy AS MATERIALIZED (
  SELECT r.cluster_id, count(*) AS running FROM repair r WHERE r.org_id = $1 AND r.ended_at IS NULL AND r.state = ANY ($4::text[]) GROUP BY r.cluster_id
), begun AS MATERIALIZED (
  SELECT r.cluster_id, count(*) AS starts FROM repair r
   WHERE r.org_id = $1 AND r.decided_at > now() - interval '1 hour' AND (r.state = ANY ($4::text[]) OR r.state = ANY ($5::text[])) GROUP BY r.cluster_id
), past AS MATERIALIZED (
  SELECT i.check_id, count(*) FILTER (WHERE r.state = $7::text) AS won, count(*) AS total
    FROM repair r JOIN incident i ON i.org_id = r.org_id AND i.id = r.incident_id
   WHERE r.org_id = $1 AND r.ended_at > now() - interval '90 days' AND r.state IN ($6::text, $7::text)
     AND i.check_id IN (SELECT x.check_id FROM inc x)
   GROUP BY i.check_id
)
SELECT w.id AS node_id, w.cluster_id, w.name AS node_name, c.name AS cluster_name, o.name AS org_name, w.rack, w.leaf, w.state AS node_state, w.auto_repair, w.boot_id, w.silent,
       w.joined_at IS NOT NULL AS joined,
       c.healthy_delay_seconds, c.begin_within_seconds, c.rejoin_within_seconds, c.scheduler,
       coalesce(z.nodes, 0) AS nodes, coalesce(z.healthy, 0) AS healthy, coalesce(z.down, 0) AS down, coalesce(busy.running, 0) AS running,
       coalesce(ns.jobs, '[]')::text AS jobs, coalesce(ns.job_ids, '') AS job_ids,
       coalesce(inc.held, false) AS held, inc.main_id, array_to_string(inc.ids, ',') AS incident_ids, inc.weight, coalesce(inc.summary, '') AS summary,
       coalesce(inc.evidence, '[]'::json)::text AS evidence, coalesce(inc.check_id, '') AS check_id, coalesce(past.won, 0) AS won,
       coalesce(past.total, 0) AS total,
       (SELECT string_agg((SELECT count(*) FROM repair r WHERE r.org_id = $1 AND r.node_id = w.id AND r.action = a.action
                                                            AND r.state = ANY ($5::text[]) AND r.created_at > now() - interval '7 days'
                                                            AND (r.incident_id IS NULL OR inc.check_id IS NULL OR inc.check_id =
                                                                 (SELECT x.check_id FROM incident x WHERE x.org_id = $1 AND x.id = r.incident_id)))::text,
                          ',' ORDER BY a.place)
          FROM unnest($3::text[]) WITH ORDINALITY AS a(action, place)) AS attempts,
       (SELECT max(array_position($3::text[], r.action)) FROM repair r
         WHERE r.org_id = $1 AND r.node_id = w.id AND r.state = $6::text AND r.incident_ids && inc.ids) AS failed_weight,
       (SELECT extract(epoch FROM now() - max(r.ended_at))::bigint FROM repair r
         WHERE r.org_id = $1 AND r.node_id = w.id AND r.ended_at IS NOT NULL AND r.state = ANY ($5::text[])) AS ended_seconds_ago,
       (SELECT count(*) FROM node o WHERE o.org_id = $1 AND o.cluster_id = w.cluster_id AND o.id <> w.id AND o.removed_at IS NULL
           AND o.state <> 'healthy' AND o.state IN ('unhealthy', 'repairing', 'unknown')
           AND ((w.rack <> '' AND o.rack = w.rack) OR (w.leaf <> '' AND o.leaf = w.leaf))) AS others_down,
       (SELECT count(*) FROM spare s WHERE s.org_id = $1 AND s.cluster_id = w.cluster_id AND s.state = 'available') AS spares,
       (SELECT count(*) FROM spare s WHERE s.org_id = $1 AND s.cluster_id = w.cluster_id) AS spares_total,
       r.id AS open_id, r.no AS open_no, r.version AS open_version, r.state AS open_state, r.action AS open_action,
       r.requested_by AS open_requested_by, r.plan_hash AS open_plan_hash, r.executor AS open_executor,
       {{guard_facts}}
  FROM want w JOIN cluster c ON c.org_id = $1 AND c.id = w.cluster_id JOIN org o ON o.id = $1
  LEFT JOIN inc ON inc.node_id = w.id LEFT JOIN size z ON z.cluster_id = w.cluster_id LEFT JOIN busy ON busy.cluster_id = w.cluster_id
  LEFT JOIN begun ON begun.cluster_id = w.cluster_id LEFT JOIN past ON past.check_id = inc.check_id LEFT JOIN node_scheduler ns ON ns.org_id = $1 AND ns.node_id = w.id
  LEFT JOIN repair r ON r.org_id = $1 AND r.node_id = w.id AND r.ended_at IS NULL
  {{guard_joins}}
 ORDER BY w.id;

-- A person asks for a repair; it is proposed like any other. The plan was made from repair_facts a moment ago.
-- $2 node $3 key $4 fingerprint $5 actor $6 context $7 id $8 action $9 reason $10 incident $11 all incidents $12 plan $13 plan hash
-- $14 boot id $15 attempt $16 executor $17 the first state
-- name: repair_request
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), nd AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL FOR NO KEY UPDATE
), busy AS MATERIALIZED (
  SELECT r.no, r.state FROM nd JOIN repair r ON r.org_id = $1 AND r.node_id = nd.id AND r.ended_at IS NULL
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, last_no = h.last_no + 1 FROM nd
   WHERE h.org_id = $1 AND NOT EXISTS (SELECT FROM busy) AND NOT EXISTS (SELECT FROM seen)
  RETURNING h.event_seq, h.last_no
), act AS (
  INSERT INTO repair AS r (org_id, id, no, cluster_id, node_id, incident_id, incident_ids, action, state, reason, requested_by, plan,
                           plan_hash, boot_id, attempt, executor)
  SELECT $1, $7::uuid, head.last_no, nd.cluster_id, nd.id, $10::uuid, $11::uuid[], $8::text, $17::text, $9::text, $5::text, $12::jsonb,
         $13::text, $14::uuid, $15::integer, $16::text
    FROM nd, head
  RETURNING {{repair_fields}}, {{repair_blocked}} AS blocked
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail, actor) SELECT $1, a.id, 1, a.state, a.reason, $5::text FROM act a
  RETURNING n, state, detail, actor, started_at, ended_at
), full_row AS MATERIALIZED (
  SELECT a.*, (SELECT json_agg(s) FROM step s) AS steps, a.blocked IS NULL AS can_approve
    FROM act a
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, actor, summary, data)
  SELECT $1, head.event_seq, 'repair.proposed', f.cluster_id, f.node_id, f.incident_id, f.id, $5::text,
         'Repair ' || f.no || ' was asked for by ' || $5::text || ': ' || replace(f.action, '_', ' ') || ' of ' || f.node_name || '. ' || f.reason,
         jsonb_build_object('no', f.no, 'action', f.action, 'to', f.state)
    FROM head, full_row f
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(f)::text FROM head, full_row f WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'repair.request', 'target', f.id, 'target_name', 'repair ' || f.no,
                 'outcome', 'done', 'before', NULL,
                 'after', jsonb_build_object('state', f.state, 'node', f.node_name, 'action', f.action, 'plan_hash', f.plan_hash,
                                             'reason', f.reason)))::text
    FROM head, full_row f
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN f.id IS NOT NULL THEN 201
            WHEN b.no IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND b.no IS NOT NULL
            THEN 'Repair ' || b.no || ' of this node is still open (' || b.state || '). Decide or cancel it first.' END AS detail,
       b.state, s.status IS NOT NULL AS replayed, coalesce(f.version, (s.body::json ->> 'version')::bigint) AS version,
       '/api/v1/repairs/' || coalesce(f.id::text, s.body::json ->> 'id') AS next, coalesce(row_to_json(f)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN busy b ON true LEFT JOIN full_row f ON true;
