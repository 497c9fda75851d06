-- Parts of nodes, known by their serial.

-- fragment: device_fields
d.id, d.node_id, d.type, d.serial, d.index, d.pci, d.model, d.firmware, d.memory_mib, d.note, d.present, d.first_seen_at, d.last_seen_at, d.version

-- Sorted by type and serial; the cursor is both. $2 node $3 limit $4 cursor
-- name: device_list
WITH page AS MATERIALIZED (
  SELECT {{device_fields}} FROM device d
   WHERE d.org_id = $1 AND d.node_id = $2::uuid
     AND ($4::text IS NULL OR (d.type, d.serial) > (split_part($4, ' ', 1), substr($4, strpos($4, ' ') + 1)))
   ORDER BY d.type, d.serial LIMIT $3::int + 1
)
SELECT CASE WHEN EXISTS (SELECT FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL) THEN 200 ELSE 404 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(x.type || ' ' || x.serial ORDER BY x.type, x.serial))[$3::int] END FROM page x) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.type, t.serial), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.type, x.serial LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: device_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{device_fields}} FROM device d WHERE d.org_id = $1 AND d.id = $2::uuid) t ON true;

-- A part registered by hand. $2 node $3 key $4 fingerprint $5 actor $6 context $7 type $8 serial $9 pci $10 model $11 id
-- name: device_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), n AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.name FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL FOR KEY SHARE
), act AS (
  INSERT INTO device AS d (org_id, id, node_id, type, serial, pci, model, present)
  SELECT $1, $11::uuid, n.id, $7, $8, coalesce($9, ''), coalesce($10, ''), false FROM n WHERE NOT EXISTS (SELECT FROM seen)
  RETURNING {{device_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'device.updated', n.cluster_id, n.id, $5, n.name || ': ' || a.type || ' ' || a.serial || ' was registered',
         jsonb_build_object('device_id', a.id) FROM head h, act a, n
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'device.create', 'target', a.id, 'target_name', a.serial,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $4 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/devices/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- $3 If-Match $4 actor $5 context $6 note
-- name: device_update
WITH cur AS MATERIALIZED (
  SELECT {{device_fields}} FROM device d WHERE d.org_id = $1 AND d.id = $2::uuid FOR UPDATE
), upd AS (
  UPDATE device d SET note = coalesce($6, d.note), version = d.version + 1
    FROM cur WHERE d.org_id = $1 AND d.id = cur.id AND cur.version = $3::bigint
  RETURNING {{device_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'device.updated', n.cluster_id, n.id, $4, n.name || ': the note on ' || u.type || ' ' || u.serial || ' was changed',
         jsonb_build_object('device_id', u.id) FROM head h, upd u JOIN node n ON n.org_id = $1 AND n.id = u.node_id
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'device.update', 'target', u.id, 'target_name', u.serial,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 412 ELSE 404 END AS status,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;
