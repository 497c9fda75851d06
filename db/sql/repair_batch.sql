-- Repairs that a person asks for together; they start wave by wave.

-- All or none. $2 cluster $3 key $4 fingerprint $5 actor $6 context $7 reason $8 array of {id, node_id, action, incident_id, incident_ids, plan,
-- plan_hash, boot_id, attempt, executor, wave} $9 first state $10 batch $11 how many the person expects
-- name: repair_request_batch
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), todo AS MATERIALIZED (
  SELECT t.id, t.node_id, t.action, t.incident_id, t.incident_ids, t.plan, t.plan_hash, t.boot_id, t.attempt, t.executor, t.wave, n.name AS node_name,
         row_number() OVER (ORDER BY t.wave, n.name, n.id) AS place
    FROM jsonb_to_recordset($8::jsonb) AS t(id uuid, node_id uuid, action text, incident_id uuid, incident_ids uuid[], plan jsonb, plan_hash text,
                                            boot_id uuid, attempt integer, executor text, wave integer)
    JOIN node n ON n.org_id = $1 AND n.id = t.node_id AND n.cluster_id = $2::uuid AND n.removed_at IS NULL
), busy AS MATERIALIZED (
  SELECT r.no, r.state, t.node_name FROM todo t JOIN repair r ON r.org_id = $1 AND r.node_id = t.node_id AND r.ended_at IS NULL ORDER BY r.no LIMIT 1
), good AS MATERIALIZED (
  SELECT count(*) AS n FROM todo HAVING count(*) = $11::bigint AND count(*) > 0 AND NOT EXISTS (SELECT FROM busy) AND NOT EXISTS (SELECT FROM seen)
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + good.n, last_no = h.last_no + good.n FROM good WHERE h.org_id = $1
  RETURNING h.event_seq - good.n AS seq_base, h.last_no - good.n AS no_base
), act AS (
  INSERT INTO repair AS r (org_id, id, no, cluster_id, node_id, incident_id, incident_ids, action, state, reason, requested_by, plan, plan_hash,
                           boot_id, attempt, executor, batch_id, wave)
  SELECT $1, t.id, head.no_base + t.place, $2::uuid, t.node_id, t.incident_id, t.incident_ids, t.action, $9::text, $7::text, $5::text, t.plan, t.plan_hash,
         t.boot_id, t.attempt, t.executor, $10::uuid, t.wave
    FROM head, todo t
  RETURNING {{repair_fields}}, {{repair_blocked}} AS blocked
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail, actor) SELECT $1, a.id, 1, a.state, a.reason, $5::text FROM act a
  RETURNING repair_id, n, state, detail, actor, started_at, ended_at
), items AS MATERIALIZED (
  SELECT a.*, (SELECT json_agg(json_build_object('n', s.n, 'state', s.state, 'detail', s.detail, 'actor', s.actor, 'started_at', s.started_at,
                                                 'ended_at', s.ended_at)) FROM step s WHERE s.repair_id = a.id) AS steps,
         a.blocked IS NULL AS can_approve
    FROM act a
), whole AS MATERIALIZED (
  SELECT json_build_object('batch_id', $10::uuid, 'waves', max(i.wave), 'items', json_agg(i ORDER BY i.wave, i.no))::text AS body FROM items i HAVING count(*) > 0
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, actor, summary, data)
  SELECT $1, head.seq_base + row_number() OVER (ORDER BY i.no), 'repair.proposed', i.cluster_id, i.node_id, i.incident_id, i.id, $5::text,
         'Repair ' || i.no || ' was asked for by ' || $5::text || ': ' || replace(i.action, '_', ' ') || ' of ' || i.node_name || ', wave ' || i.wave
         || '. ' || i.reason, jsonb_build_object('no', i.no, 'action', i.action, 'to', i.state, 'batch_id', i.batch_id, 'wave', i.wave)
    FROM head, items i
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body) SELECT $1, $3, $4::bytea, 201, w.body FROM whole w WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'repair.request_batch', 'target', $10::uuid,
                 'target_name', 'repairs of ' || $11::text || ' nodes', 'outcome', 'done', 'before', NULL,
                 'after', (SELECT jsonb_build_object('reason', $7::text, 'repairs', jsonb_agg(i.no ORDER BY i.no)) FROM items i)))::text
    FROM whole
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN w.body IS NOT NULL THEN 201
            WHEN NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 404
            WHEN (SELECT count(*) FROM todo) <> $11::bigint THEN 422 ELSE 409 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND w.body IS NULL AND (SELECT count(*) FROM todo) <> $11::bigint THEN '#/expected_count' END AS pointer,
       CASE WHEN s.status IS NOT NULL OR w.body IS NOT NULL THEN NULL
            WHEN (SELECT count(*) FROM todo) <> $11::bigint
            THEN 'They name ' || (SELECT count(*) FROM todo) || ' nodes of this cluster, not ' || $11::text || '. Nothing was asked for.'
            ELSE 'Repair ' || b.no || ' of ' || b.node_name || ' is still open (' || b.state || '). Nothing was asked for.' END AS detail,
       b.state, s.status IS NOT NULL AS replayed, '/api/v1/clusters/' || $2 || '/repairs' AS next, coalesce(w.body, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN busy b ON true LEFT JOIN whole w ON true;
