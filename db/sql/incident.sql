-- Incidents: open and past faults, folded from events. Lists go by number, newest first.

-- fragment: incident_fields
i.id, i.no, i.cluster_id, i.node_id, (SELECT n.name FROM node n WHERE n.org_id = i.org_id AND n.id = i.node_id) AS node_name,
i.device, i.check_id, i.code, i.severity, {{incident_action}} AS action, i.node_fault, i.clears, i.quiet_seconds,
CASE i.clears WHEN 'new_boot' THEN 'Clears when the node has booted again and the fault did not return.'
              WHEN 'event' THEN 'Clears when the agent reads that the condition is gone.'
              WHEN 'quiet' THEN 'Clears after ' || CASE WHEN i.quiet_seconds % 60 = 0 AND i.quiet_seconds > 0 THEN i.quiet_seconds / 60 || ' min'
                                                        ELSE i.quiet_seconds || ' s' END || ' without a new event.'
              ELSE 'Clears when a person closes it.' END AS clear_rule,
i.summary, i.evidence, i.count, i.first_at, i.last_at, i.closed_at, i.close_reason, i.closed_by, i.note,
CASE WHEN i.closed_at IS NULL THEN 'open' ELSE 'closed' END AS state,
(SELECT r.id FROM repair r WHERE r.org_id = i.org_id AND r.node_id = i.node_id AND (r.incident_id = i.id OR i.id = ANY (r.incident_ids))
  ORDER BY r.created_at DESC, r.id DESC LIMIT 1) AS repair_id,
i.root_id, i.common_id, {{incident_members}} AS members, i.serial, i.repeats, i.action_reason, i.mode, i.version

-- What a repair is, without plan and steps.
-- fragment: repair_summary
r.id, r.no, r.cluster_id, r.node_id, (SELECT m.name FROM node m WHERE m.org_id = r.org_id AND m.id = r.node_id) AS node_name, r.incident_id,
r.action, r.state, r.state_since, r.deadline_at, r.reason, r.requested_by, r.decided_by, r.decided_at, r.comment, r.plan_hash, r.attempt,
r.created_at, r.ended_at, r.version, {{repair_blocked}} IS NULL AS can_approve, {{repair_blocked}} AS blocked

-- An incident is in [since, until) while it was open or had events there. The cursor is the number of the last row.
-- fragment: incident_filter
i.org_id = $1 AND ($4::text IS NULL OR (i.closed_at IS NULL) = ($4 = 'open')) AND ($5::text[] IS NULL OR i.check_id = ANY ($5))
AND ($6::timestamptz IS NULL OR i.closed_at IS NULL OR i.closed_at >= $6) AND ($7::timestamptz IS NULL OR i.first_at < $7)
AND ($8::boolean IS NOT TRUE OR i.root_id IS NULL)
AND i.no < CASE WHEN $10::text ~ '^[0-9]{1,18}$' THEN $10::bigint ELSE 9223372036854775807 END

-- fragment: incident_page
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $9::int THEN (array_agg(x.no ORDER BY x.no DESC))[$9::int]::text END FROM page x) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.no DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.no DESC LIMIT $9::int) t) AS body
  FROM org_head h WHERE h.org_id = $1

-- All take: $2 cluster $3 node $4 state $5 checks $6 since $7 until $8 without those that follow from others $9 limit $10 cursor

-- name: incident_list_org
WITH page AS MATERIALIZED (
  SELECT {{incident_fields}} FROM incident i
   WHERE {{incident_filter}} AND $2::uuid IS NULL AND $3::uuid IS NULL ORDER BY i.no DESC LIMIT $9::int + 1
)
{{incident_page}};

-- name: incident_list_cluster
WITH page AS MATERIALIZED (
  SELECT {{incident_fields}} FROM incident i
   WHERE {{incident_filter}} AND i.cluster_id = $2::uuid AND $3::uuid IS NULL ORDER BY i.no DESC LIMIT $9::int + 1
)
{{incident_page}};

-- name: incident_list_node
WITH page AS MATERIALIZED (
  SELECT {{incident_fields}} FROM incident i
   WHERE {{incident_filter}} AND i.node_id = $3::uuid AND ($2::uuid IS NULL OR i.cluster_id = $2) ORDER BY i.no DESC LIMIT $9::int + 1
)
{{incident_page}};

-- name: incident_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{incident_fields}} FROM incident i WHERE i.org_id = $1 AND i.id = $2::uuid) t ON true;

-- A person's report; the same thing reported again is counted. $2 node $3 key $4 fingerprint $5 actor $6 context $7 summary $8 severity
-- $9 node_fault $10 device $11 id
-- name: incident_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), n AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name, n.boot_id FROM node n
   WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL AND NOT EXISTS (SELECT FROM seen) FOR NO KEY UPDATE
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, last_no = h.last_no + 1 FROM n WHERE h.org_id = $1 RETURNING h.event_seq, h.last_no
), act AS (
  INSERT INTO incident AS i (org_id, id, no, cluster_id, node_id, device, check_id, severity, node_fault, clears, boot_id, summary, evidence,
                             first_at, last_at)
  SELECT $1, $11::uuid, h.last_no, n.cluster_id, n.id, coalesce($10, ''), 'reported', $8, coalesce($9::boolean, false), 'person', n.boot_id, $7,
         jsonb_build_array(jsonb_build_object('at', now(), 'source', 'person', 'text', $5::text || ': ' || $7, 'opened', true)), now(), now()
    FROM head h, n
  ON CONFLICT (org_id, node_id, device, check_id, code) WHERE closed_at IS NULL
  DO UPDATE SET count = i.count + 1, last_at = now(), severity = excluded.severity, node_fault = i.node_fault OR excluded.node_fault,
                summary = excluded.summary, version = i.version + 1,
                evidence = CASE WHEN jsonb_array_length(i.evidence) < 20 THEN i.evidence || jsonb_set(excluded.evidence, '{0,opened}', 'false')
                                ELSE i.evidence END
  RETURNING {{incident_fields}}
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, actor, summary, data)
  SELECT $1, h.event_seq, CASE a.count WHEN 1 THEN 'incident.opened' ELSE 'incident.changed' END, a.severity, a.cluster_id, a.node_id, a.id, $5,
         a.node_name || ': ' || a.summary, jsonb_build_object('no', a.no, 'check_id', a.check_id, 'code', a.code, 'device', a.device, 'node_fault', a.node_fault)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'incident.report', 'target', a.id, 'target_name', '#' || a.no,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $4 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/incidents/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- $3 If-Match $4 actor $5 context $6 note
-- name: incident_update
WITH cur AS MATERIALIZED (
  SELECT i.id, i.no, i.note, i.version FROM incident i WHERE i.org_id = $1 AND i.id = $2::uuid FOR NO KEY UPDATE
), upd AS (
  UPDATE incident i SET note = coalesce($6, i.note), version = i.version + 1
    FROM cur WHERE i.org_id = $1 AND i.id = cur.id AND cur.version = $3::bigint
  RETURNING {{incident_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, actor, summary)
  SELECT $1, h.event_seq, 'incident.changed', u.cluster_id, u.node_id, u.id, $4, 'The note on incident ' || u.no || ' was changed' FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'incident.update', 'target', u.id, 'target_name', '#' || u.no,
                                              'outcome', 'done', 'before', json_build_object('note', c.note), 'after', json_build_object('note', u.note)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 412 ELSE 404 END AS status,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;

-- A person says that it is over. $2 incident $3 key $4 fingerprint $5 actor $6 context $7 reason
-- name: incident_close
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT i.id, i.version, i.closed_at FROM incident i WHERE i.org_id = $1 AND i.id = $2::uuid FOR NO KEY UPDATE
), act AS (
  UPDATE incident i SET closed_at = now(), close_reason = $7::text, closed_by = $5::text, version = i.version + 1
    FROM cur WHERE i.org_id = $1 AND i.id = cur.id AND cur.closed_at IS NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{incident_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, actor, summary, data)
  SELECT $1, head.event_seq, 'incident.closed', a.cluster_id, a.node_id, a.id, $5::text,
         'Incident ' || a.no || ' closed by ' || $5::text || ': ' || $7::text,
         jsonb_build_object('no', a.no, 'check_id', a.check_id, 'code', a.code, 'device', a.device, 'reason', $7::text)
    FROM head, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM head, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'incident.close', 'target', a.id, 'target_name', '#' || a.no,
                                              'outcome', 'done', 'before', jsonb_build_object('state', 'open'),
                                              'after', jsonb_build_object('state', 'closed', 'reason', $7::text)))::text
    FROM head, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200
            WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL AND c.id IS NOT NULL THEN 'This incident is closed already.' END AS detail,
       CASE WHEN c.id IS NOT NULL AND a.id IS NULL THEN 'closed' END AS state, s.status IS NOT NULL AS replayed,
       coalesce(a.version, (s.body::json ->> 'version')::bigint, c.version) AS version, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN act a ON true;
