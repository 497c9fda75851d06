-- What nodes of a place should have; agents get the nearest of each.

-- fragment: expectation_fields
e.id, e.cluster_id, e.gpu_type, e.node_id, e.gpus, e.ports, e.port_gbps, e.reason, e.created_by, e.created_at, e.updated_at, e.version

-- $2 limit $3 cursor
-- name: expectation_list
WITH page AS MATERIALIZED (
  SELECT {{expectation_fields}} FROM expectation e
   WHERE e.org_id = $1 AND ($3::text IS NULL OR e.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY e.id LIMIT $2::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: expectation_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{expectation_fields}} FROM expectation e WHERE e.org_id = $1 AND e.id = $2::uuid) t ON true;

-- fragment: expectation_wrong_detail
CASE w.pointer WHEN '#/gpus' THEN 'Set at least one of gpus, ports and port_gbps.'
               WHEN '#/cluster_id' THEN 'It names no cluster of this organization.'
               WHEN '#/node_id' THEN 'It names no node of this organization.' END

-- $2 key $3 fingerprint $4 actor $5 context $6 cluster $7 GPU type $8 node $9 GPUs $10 ports $11 Gbit/s of a port $12 reason $13 id
-- name: expectation_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), w AS MATERIALIZED (
  SELECT CASE WHEN $6::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $6) THEN '#/cluster_id'
              WHEN $8::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM node n WHERE n.org_id = $1 AND n.id = $8 AND n.removed_at IS NULL) THEN '#/node_id'
              WHEN coalesce($9, $10, $11) IS NULL THEN '#/gpus' END AS pointer
), act AS (
  INSERT INTO expectation AS e (org_id, id, cluster_id, gpu_type, node_id, gpus, ports, port_gbps, reason, created_by)
  SELECT $1, $13::uuid, $6::uuid, coalesce($7, ''), $8::uuid, $9::integer, $10, $11::integer, coalesce($12, ''), $4
    FROM w WHERE w.pointer IS NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{expectation_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'expectation.changed', a.cluster_id, a.node_id, $4, 'What nodes should have was set', jsonb_build_object('expectation_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'expectation.create', 'target', a.id, 'target_name', a.gpu_type,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN w.pointer IS NOT NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL THEN w.pointer END AS pointer, CASE WHEN s.status IS NULL THEN {{expectation_wrong_detail}} END AS detail,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $3 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/expectations/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM w LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- What is absent stays; null takes a part away. $3 If-Match $4 actor $5 context $6 GPUs $7 ports $8 Gbit/s $9 reason $10 fields present
-- name: expectation_update
WITH cur AS MATERIALIZED (
  SELECT {{expectation_fields}} FROM expectation e WHERE e.org_id = $1 AND e.id = $2::uuid FOR UPDATE
), v AS (
  SELECT CASE WHEN 'gpus' = ANY (p.list) THEN $6::integer ELSE c.gpus END AS gpus, CASE WHEN 'ports' = ANY (p.list) THEN $7 ELSE c.ports END AS ports,
         CASE WHEN 'port_gbps' = ANY (p.list) THEN $8::integer ELSE c.port_gbps END AS port_gbps
    FROM cur c, (SELECT string_to_array($10, ',') AS list) p
), w AS MATERIALIZED (
  SELECT CASE WHEN v.gpus IS NULL AND v.ports IS NULL AND v.port_gbps IS NULL THEN '#/gpus' END AS pointer FROM v
), upd AS (
  UPDATE expectation e SET gpus = v.gpus, ports = v.ports, port_gbps = v.port_gbps, reason = coalesce($9, e.reason), version = e.version + 1,
         updated_at = now()
    FROM cur, v, w WHERE e.org_id = $1 AND e.id = cur.id AND cur.version = $3::bigint AND w.pointer IS NULL
  RETURNING {{expectation_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'expectation.changed', u.cluster_id, u.node_id, $4, 'What nodes should have was changed', jsonb_build_object('expectation_id', u.id)
    FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'expectation.update', 'target', u.id, 'target_name', u.gpu_type,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN w.pointer END AS pointer,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN {{expectation_wrong_detail}} END AS detail,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN w ON true LEFT JOIN upd u ON true;

-- $3 actor $4 context
-- name: expectation_delete
WITH cur AS MATERIALIZED (
  SELECT {{expectation_fields}} FROM expectation e WHERE e.org_id = $1 AND e.id = $2::uuid FOR UPDATE
), del AS (
  DELETE FROM expectation e USING cur WHERE e.org_id = $1 AND e.id = cur.id RETURNING e.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM del WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary)
  SELECT $1, h.event_seq, 'expectation.changed', c.cluster_id, c.node_id, $3, 'What nodes should have is not said any more' FROM head h, cur c
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'expectation.delete', 'target', c.id, 'target_name', c.gpu_type,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', NULL))::text
    FROM head h, cur c
)
SELECT CASE WHEN c.id IS NULL THEN 404 ELSE 204 END AS status FROM (SELECT 1) one LEFT JOIN cur c ON true;
