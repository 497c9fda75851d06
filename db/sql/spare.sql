-- The pool of a cluster: machines of its provisioner that may take the place of a broken one.

-- fragment: spare_fields
s.id, s.cluster_id, s.machine, s.serial, s.note, s.state, s.reason, s.repair_id, s.node_id, s.created_by, s.created_at, s.version

-- Oldest first. $2 cluster $3 limit $4 cursor
-- name: spare_list
WITH page AS MATERIALIZED (
  SELECT {{spare_fields}} FROM spare s
   WHERE s.org_id = $1 AND s.cluster_id = $2::uuid
     AND ($4::text IS NULL OR s.id > CASE WHEN $4 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $4::uuid END)
   ORDER BY s.id LIMIT $3::int + 1
)
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.id ORDER BY p.id))[$3::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT p.* FROM page p ORDER BY p.id LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: spare_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{spare_fields}} FROM spare s WHERE s.org_id = $1 AND s.id = $2::uuid) t ON true;

-- $2 cluster $3 key $4 fingerprint $5 actor $6 context $7 machine $8 serial $9 note $10 id
-- name: spare_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cl AS MATERIALIZED (
  SELECT c.id, c.name FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid FOR KEY SHARE
), node_of AS MATERIALIZED (
  SELECT n.name FROM node_machine x JOIN node n ON n.org_id = $1 AND n.id = x.node_id AND n.removed_at IS NULL
   WHERE x.org_id = $1 AND x.machine = $7::text LIMIT 1
), act AS (
  INSERT INTO spare AS s (org_id, id, cluster_id, machine, serial, note, created_by)
  SELECT $1, $10::uuid, cl.id, $7::text, coalesce($8::text, ''), coalesce($9::text, ''), $5::text FROM cl
   WHERE NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM node_of)
  ON CONFLICT (org_id, machine) DO NOTHING
  RETURNING {{spare_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'spare.added', a.cluster_id, $5, 'The machine ' || a.machine || ' is a spare of ' || cl.name || ' now',
         jsonb_build_object('spare_id', a.id) FROM head h, act a, cl
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'spare.create', 'target', a.id, 'target_name', a.machine,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201
            WHEN c.id IS NULL THEN 404 ELSE 409 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL AND c.id IS NOT NULL
            THEN coalesce('This machine is the node ' || o.name || '. A spare is a machine that no node uses.',
                          'This machine is in a pool already. Remove it there first.') END AS detail,
       s.status IS NOT NULL AS replayed, coalesce(a.version, (s.body::json ->> 'version')::bigint) AS version,
       '/api/v1/spares/' || coalesce(a.id::text, s.body::json ->> 'id') AS next, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true LEFT JOIN cl c ON true LEFT JOIN node_of o ON true;

-- One that a repair has claimed stays. $2 spare $3 actor $4 context
-- name: spare_delete
WITH cur AS MATERIALIZED (
  SELECT {{spare_fields}}, r.no AS repair_no FROM spare s LEFT JOIN repair r ON r.org_id = $1 AND r.id = s.repair_id AND r.ended_at IS NULL
   WHERE s.org_id = $1 AND s.id = $2::uuid FOR UPDATE OF s
), act AS (
  DELETE FROM spare s USING cur WHERE s.org_id = $1 AND s.id = cur.id AND (s.state <> 'claimed' OR cur.repair_no IS NULL) RETURNING {{spare_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'spare.removed', a.cluster_id, $3, 'The machine ' || a.machine || ' is in no pool any more', jsonb_build_object('spare_id', a.id)
    FROM head h, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'spare.delete', 'target', a.id, 'target_name', a.machine,
                                              'outcome', 'done', 'before', row_to_json(a), 'after', NULL))::text FROM head h, act a
)
SELECT CASE WHEN a.id IS NOT NULL THEN 204 WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN a.id IS NULL AND c.id IS NOT NULL THEN 'Repair ' || c.repair_no || ' has claimed this spare. Wait until it has ended.' END AS detail
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN act a ON true;
