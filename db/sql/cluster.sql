-- Clusters and what is configured for them.

-- fragment: cluster_fields
c.id, c.project_id, c.name, c.scheduler, c.region, c.gpu_type, c.gpus_per_node, c.driver_version, c.network, c.os_image, c.billing_rate,
c.billing_currency, c.healthy_delay_seconds, c.begin_within_seconds, c.rejoin_within_seconds, c.created_at, c.updated_at, c.version

-- The newest roll-up of a cluster as JSON.
-- fragment: rollup_json
row_to_json((SELECT t FROM (SELECT r.version, r.at, r.nodes,
  (SELECT s FROM (SELECT r.pending, r.starting, r.healthy, r.unhealthy, r.repairing, r.paused, r.unknown) s) AS states,
  r.warning, r.seen_20s, r.gpus, r.gpus_read, r.gpu_busy_ratio, r.gpu_mem_used_mib, r.gpu_mem_total_mib, r.cpu_ratio,
  r.mem_used_mib, r.mem_total_mib, r.net_mbps, r.fabric_mbps, r.power_w) t))

-- $2 project or NULL $3 limit $4 cursor
-- name: cluster_list
WITH page AS MATERIALIZED (
  SELECT {{cluster_fields}}, {{rollup_json}} AS rollup
    FROM cluster c JOIN cluster_rollup r ON r.org_id = c.org_id AND r.cluster_id = c.id
   WHERE c.org_id = $1 AND ($2::uuid IS NULL OR c.project_id = $2) AND ($4::text IS NULL OR c.name > $4)
   ORDER BY c.name LIMIT $3::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.name ORDER BY p.name))[$3::int] END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.name), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.name LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: cluster_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{cluster_fields}} FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) t ON true;

-- $2 key $3 fingerprint $4 actor $5 context $6 project_id $7 name $8 scheduler $9 region $10 gpu_type $11 gpus_per_node $12 driver_version
-- $13 network $14 os_image $15 billing_rate $16 billing_currency $17 healthy_delay $18 begin_within $19 rejoin_within $20 id
-- name: cluster_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), proj AS MATERIALIZED (
  SELECT p.id FROM project p WHERE p.org_id = $1 AND p.id = $6::uuid FOR KEY SHARE
), act AS (
  INSERT INTO cluster AS c (org_id, id, project_id, name, scheduler, region, gpu_type, gpus_per_node, driver_version, network, os_image,
         billing_rate, billing_currency, healthy_delay_seconds, begin_within_seconds, rejoin_within_seconds)
  SELECT $1, $20::uuid, p.id, $7, coalesce($8, 'none'), coalesce($9, ''), coalesce($10, ''), $11::integer, coalesce($12, ''), coalesce($13, ''),
         coalesce($14, ''), $15::numeric, coalesce($16, 'USD'), coalesce($17::integer, 600), coalesce($18::integer, 1800),
         coalesce($19::integer, 1800)
    FROM proj p WHERE NOT EXISTS (SELECT FROM seen) AND ($16::text IS NULL OR $16 ~ '^[A-Z]{3}$')
  RETURNING {{cluster_fields}}
), roll AS (
  INSERT INTO cluster_rollup (org_id, cluster_id) SELECT $1, a.id FROM act a
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary)
  SELECT $1, h.event_seq, 'cluster.created', a.id, $4, 'Cluster ' || a.name || ' was created' FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'cluster.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201 ELSE 422 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN CASE WHEN EXISTS (SELECT FROM proj) THEN '#/billing_currency' ELSE '#/project_id' END END AS pointer,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN CASE WHEN EXISTS (SELECT FROM proj) THEN 'Three capital letters are expected (ISO 4217).'
            ELSE 'It names no project of this organization.' END END AS detail,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $3 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/clusters/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- $3 If-Match $4 actor $5 context $6 project_id $7 name $8 scheduler $9 region $10 gpu_type $11 gpus_per_node $12 driver_version
-- $13 network $14 os_image $15 billing_rate $16 billing_currency $17 healthy_delay $18 begin_within $19 rejoin_within $20 fields present
-- name: cluster_update
WITH cur AS MATERIALIZED (
  SELECT {{cluster_fields}} FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid FOR UPDATE
), proj AS MATERIALIZED (
  SELECT cur.project_id AS id FROM cur WHERE $6::uuid IS NULL OR $6 = cur.project_id
  UNION ALL SELECT p.id FROM cur JOIN project p ON p.id = $6::uuid AND p.id <> cur.project_id WHERE p.org_id = $1
), upd AS (
  UPDATE cluster c SET project_id = proj.id, name = coalesce($7, c.name), scheduler = coalesce($8, c.scheduler),
         region = coalesce($9, c.region), gpu_type = coalesce($10, c.gpu_type),
         gpus_per_node = CASE WHEN 'gpus_per_node' = ANY (string_to_array($20, ',')) THEN $11::integer ELSE c.gpus_per_node END,
         driver_version = coalesce($12, c.driver_version), network = coalesce($13, c.network), os_image = coalesce($14, c.os_image),
         billing_rate = CASE WHEN 'billing_rate' = ANY (string_to_array($20, ',')) THEN $15::numeric ELSE c.billing_rate END,
         billing_currency = coalesce($16, c.billing_currency),
         healthy_delay_seconds = coalesce($17::integer, c.healthy_delay_seconds),
         begin_within_seconds = coalesce($18::integer, c.begin_within_seconds),
         rejoin_within_seconds = coalesce($19::integer, c.rejoin_within_seconds),
         version = c.version + 1, updated_at = now()
    FROM cur, proj WHERE c.org_id = $1 AND c.id = cur.id AND cur.version = $3::bigint AND ($16::text IS NULL OR $16 ~ '^[A-Z]{3}$')
  RETURNING {{cluster_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary)
  SELECT $1, h.event_seq, 'cluster.updated', u.id, $4, 'Settings of cluster ' || u.name || ' were changed' FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'cluster.update', 'target', u.id, 'target_name', u.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN CASE WHEN EXISTS (SELECT FROM proj) THEN '#/billing_currency' ELSE '#/project_id' END END AS pointer,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN CASE WHEN EXISTS (SELECT FROM proj) THEN 'Three capital letters are expected (ISO 4217).'
            ELSE 'It names no project of this organization.' END END AS detail,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;
