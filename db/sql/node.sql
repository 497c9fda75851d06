-- Nodes: lists, one node with all that is known of it, and what people change.

-- What a statement that changed a node hands on, so that node_joins and node_summary fit behind it.
-- fragment: node_base
n.org_id, n.id, n.cluster_id, n.name, n.state, n.reason, n.state_since, n.warning, n.schedulable, n.auto_repair, n.paused_until, n.rack, n.leaf,
n.partition, n.interval_seconds, n.gpus_expected, n.version

-- Readings older than three intervals are gaps, not values.
-- fragment: node_joins
LEFT JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
LEFT JOIN node_latest v ON v.org_id = n.org_id AND v.node_id = n.id AND v.seen_at > now() - 3 * n.interval_seconds * interval '1 second'

-- fragment: node_incident_id
(SELECT i.id FROM incident i WHERE i.org_id = n.org_id AND i.node_id = n.id AND {{incident_counts}}
  ORDER BY i.node_fault DESC, i.severity = 'critical' DESC, i.no LIMIT 1)

-- fragment: node_repair_id
(SELECT r.id FROM repair r WHERE r.org_id = n.org_id AND r.node_id = n.id AND r.ended_at IS NULL)

-- fragment: node_facts
n.id, n.cluster_id, n.name, n.state, n.reason, n.state_since, n.warning, n.schedulable, n.rack, n.leaf, n.partition, l.seen_at,
n.interval_seconds, round(v.gpu_util_permille / 1000.0, 3) AS gpu_util_ratio,
v.gpu_mem_used_mib, v.gpu_mem_all_mib AS gpu_mem_total_mib, v.gpu_temp_max_c, round(v.cpu_permille / 1000.0, 3) AS cpu_ratio, v.mem_used_mib,
v.mem_total_mib, coalesce(v.fabric_rx_mbps + v.fabric_tx_mbps, v.net_rx_mbps + v.net_tx_mbps) AS net_mbps,
{{node_incident_id}} AS incident_id, {{node_repair_id}} AS repair_id, n.version

-- fragment: node_summary
{{node_facts}}, coalesce(cardinality(l.gpu_util), n.gpus_expected, 0) AS gpus

-- The columns of a list's page, read by server/handlers/node_list.c, which leaves readings out that are not fresh.
-- fragment: node_page
n.id, n.name, n.state, n.reason, n.state_since, n.warning, n.schedulable, n.rack, n.leaf, n.partition, l.seen_at, n.interval_seconds,
coalesce(cardinality(l.gpu_util), n.gpus_expected, 0) AS gpus, l.seen_at > now() - 3 * n.interval_seconds * interval '1 second' AS fresh,
l.gpu_util_permille, l.gpu_mem_used_mib, l.gpu_mem_all_mib, l.gpu_temp_max_c, l.cpu_permille, l.mem_used_mib, l.mem_total_mib,
coalesce(l.fabric_rx_mbps + l.fabric_tx_mbps, l.net_rx_mbps + l.net_tx_mbps) AS net_mbps,
CASE WHEN n.warning OR n.state <> 'healthy' THEN {{node_incident_id}} END AS incident_id, r.id AS repair_id, n.version

-- fragment: node_page_join
LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id
LEFT JOIN repair r ON r.org_id = $1 AND r.node_id = n.id AND r.ended_at IS NULL

-- fragment: node_page_base
n.org_id, n.id, n.name, n.state, n.reason, n.state_since, n.warning, n.schedulable, n.rack, n.leaf, n.partition, n.interval_seconds,
n.gpus_expected, n.version

-- fragment: node_list_head
SELECT h.event_seq, h.rollup_version, EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) AS known FROM org_head h WHERE h.org_id = $1

-- CASE and not coalesce() in what an index shall see: under row security coalesce() counts as leaky and becomes a filter.
-- fragment: node_list_filter
n.org_id = $1 AND n.cluster_id = $2::uuid AND n.removed_at IS NULL
AND n.name COLLATE "C" < CASE WHEN $4::text IS NULL THEN chr(1114111) ELSE $4 || chr(1114111) END
AND ($5::boolean IS NULL OR n.warning = $5) AND ($6::text IS NULL OR n.rack = $6)
AND ($7::text IS NULL OR n.pdu = $7) AND ($8::text IS NULL OR n.file_server = $8)

-- The cursor, or where the prefix begins: whichever is later.
-- fragment: node_list_from
CASE WHEN $10::text IS NULL AND $4::text IS NULL THEN '' WHEN $10 IS NULL THEN $4 WHEN $4 IS NULL THEN $10
     WHEN $10 COLLATE "C" > $4 THEN $10 ELSE $4 END

-- The lists of a cluster's nodes. All take: $2 cluster $3 states or NULL $4 prefix of the name $5 warning $6 rack $7 PDU $8 file server $9 limit $10 cursor.
-- At least one row comes back; its id is NULL when the page is empty.

-- name: node_list_name
WITH head AS ({{node_list_head}}
), page AS MATERIALIZED (
  SELECT {{node_page_base}} FROM node n
   WHERE {{node_list_filter}} AND ($3::text[] IS NULL OR n.state = ANY ($3)) AND n.name COLLATE "C" >= {{node_list_from}} AND ($10::text IS NULL OR n.name <> $10)
   ORDER BY n.name COLLATE "C" LIMIT $9::int + 1
)
SELECT h.event_seq, h.rollup_version, h.known, n.name AS cursor, {{node_page}}
  FROM head h LEFT JOIN page n ON true {{node_page_join}} ORDER BY n.name COLLATE "C";

-- name: node_list_name_desc
WITH head AS ({{node_list_head}}
), page AS MATERIALIZED (
  SELECT {{node_page_base}} FROM node n
   WHERE {{node_list_filter}} AND ($3::text[] IS NULL OR n.state = ANY ($3)) AND n.name COLLATE "C" < CASE WHEN $10::text IS NULL THEN chr(1114111) ELSE $10 END AND n.name COLLATE "C" >= CASE WHEN $4 IS NULL THEN '' ELSE $4 END
   ORDER BY n.name COLLATE "C" DESC LIMIT $9::int + 1
)
SELECT h.event_seq, h.rollup_version, h.known, n.name AS cursor, {{node_page}}
  FROM head h LEFT JOIN page n ON true {{node_page_join}} ORDER BY n.name COLLATE "C" DESC;

-- By name, of some states: one bounded walk a state.
-- name: node_list_states
WITH head AS ({{node_list_head}}
), page AS MATERIALIZED (
  SELECT x.* FROM (SELECT DISTINCT u.state FROM unnest($3::text[]) u(state)) s
   CROSS JOIN LATERAL (SELECT {{node_page_base}} FROM node n
      WHERE {{node_list_filter}} AND n.state = s.state AND n.name COLLATE "C" >= {{node_list_from}} AND ($10::text IS NULL OR n.name <> $10)
      ORDER BY n.name COLLATE "C" LIMIT $9::int + 1) x
   ORDER BY x.name COLLATE "C" LIMIT $9::int + 1
)
SELECT h.event_seq, h.rollup_version, h.known, n.name AS cursor, {{node_page}}
  FROM head h LEFT JOIN page n ON true {{node_page_join}} ORDER BY n.name COLLATE "C";

-- Worst state first, then by name. The cursor is the state's rank and the name.
-- name: node_list_worst
WITH head AS ({{node_list_head}}
), page AS MATERIALIZED (
  SELECT x.*, s.rank
    FROM unnest(ARRAY['unhealthy', 'unknown', 'repairing', 'starting', 'pending', 'paused', 'healthy']) WITH ORDINALITY s(state, rank)
   CROSS JOIN LATERAL (SELECT {{node_page_base}} FROM node n
      WHERE {{node_list_filter}} AND n.state = s.state AND ($3::text[] IS NULL OR s.state = ANY ($3))
        AND ($10::text IS NULL OR s.rank::text >= left($10, 1))
        AND n.name COLLATE "C" >= CASE WHEN $4 IS NULL THEN '' ELSE $4 END
        AND n.name COLLATE "C" > CASE WHEN s.rank::text = left($10, 1) THEN substr($10, 2) ELSE '' END
      ORDER BY n.name COLLATE "C" LIMIT $9::int + 1) x
   ORDER BY s.rank, x.name COLLATE "C" LIMIT $9::int + 1
)
SELECT h.event_seq, h.rollup_version, h.known, n.rank || n.name AS cursor, {{node_page}}
  FROM head h LEFT JOIN page n ON true {{node_page_join}} ORDER BY n.rank, n.name COLLATE "C";

-- A node that waits for its agent. $2 cluster $3 key $4 fingerprint $5 actor $6 context $7 name $8 rack $9 leaf $10 partition
-- $11 gpus_expected $12 id
-- name: node_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cl AS (
  UPDATE cluster c SET next_slot = c.next_slot + 1 WHERE c.org_id = $1 AND c.id = $2::uuid AND NOT EXISTS (SELECT FROM seen)
  RETURNING c.id, c.next_slot - 1 AS slot
), n AS (
  INSERT INTO node AS n (org_id, id, cluster_id, name, slot, rack, leaf, partition, gpus_expected, reason)
  SELECT $1, $12::uuid, cl.id, $7, cl.slot, coalesce($8, ''), coalesce($9, ''), coalesce($10, ''), $11::integer, 'Waiting for its agent to join.' FROM cl
  RETURNING {{node_base}}
), latest AS (
  INSERT INTO node_latest (org_id, node_id) SELECT $1, n.id FROM n
), moved AS (
  INSERT INTO node_transition (org_id, cluster_id, node_id, state, reason) SELECT $1, n.cluster_id, n.id, n.state, n.reason FROM n
), act AS MATERIALIZED (
  SELECT {{node_summary}} FROM n {{node_joins}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary)
  SELECT $1, h.event_seq, 'node.created', a.cluster_id, a.id, $5, a.name || ' was added and waits for its agent' FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'node.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $4 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/nodes/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Parts that are in the node, and those that were and whose place nothing else took.
-- fragment: node_gpus
SELECT coalesce(d.index, u.index) AS index, d.id AS device_id, d.serial, CASE WHEN starts_with(d.serial, 'GPU-') THEN d.serial END AS uuid, d.pci, d.model,
       coalesce(d.present, true) AS present,
       round(u.util / 100.0, 2) AS util_ratio, u.mem AS mem_used_mib, coalesce(u.mem_total, d.memory_mib) AS mem_total_mib, u.temp AS temp_c,
       u.power AS power_w,
       CASE WHEN i.node_fault OR i.severity = 'critical' OR d.present = false THEN 'fault' WHEN i.id IS NOT NULL THEN 'warning'
            WHEN u.util IS NULL THEN 'unknown' ELSE 'ok' END AS state,
       i.id AS incident_id
  FROM (SELECT d.id, d.index, d.serial, d.pci, d.model, d.memory_mib, d.present FROM device d
         WHERE d.org_id = n.org_id AND d.node_id = n.id AND d.type = 'gpu'
           AND (d.present OR NOT EXISTS (SELECT FROM device o WHERE o.org_id = n.org_id AND o.node_id = n.id AND o.type = 'gpu'
                                            AND o.present AND o.index = d.index))) d
  FULL JOIN (SELECT g.n::integer - 1 AS index, g.util, g.mem, g.mem_total, g.temp, g.power
               FROM unnest(v.gpu_util, v.gpu_mem_mib, v.gpu_mem_total_mib, v.gpu_temp_c, v.gpu_power_w) WITH ORDINALITY
                 g(util, mem, mem_total, temp, power, n)) u ON u.index = d.index AND d.present
  LEFT JOIN LATERAL (SELECT i.id, i.node_fault, i.severity FROM incident i
      WHERE i.org_id = n.org_id AND i.node_id = n.id AND {{incident_counts}} AND d.pci <> '' AND i.device = d.pci
      ORDER BY i.node_fault DESC, i.severity = 'critical' DESC, i.no LIMIT 1) i ON true

-- fragment: node_detail
{{node_facts}}, n.boot_id, n.booted_at, n.ready_at, n.agent_version, n.driver_version, n.kernel, n.os_image, n.gpu_type, n.host_serial,
n.address, n.cpus, n.memory_mib, n.gpus_expected, n.auto_repair, n.paused_until, n.paused_by, n.pdu, n.file_server, n.role, n.joined_at, n.created_at,
n.updated_at, (SELECT x.driver_changed_at FROM node x WHERE x.org_id = n.org_id AND x.id = n.id) AS driver_changed_at,
(SELECT row_to_json(t) FROM (SELECT l.seen_at, round(l.cpu_permille / 1000.0, 3) AS cpu_ratio, l.mem_used_mib, l.mem_total_mib,
   round(l.disk_permille / 1000.0, 3) AS disk_ratio, l.net_rx_mbps, l.net_tx_mbps, l.fabric_rx_mbps, l.fabric_tx_mbps) t) AS latest,
(SELECT coalesce(json_agg(row_to_json(t) ORDER BY t.index, t.device_id), '[]') FROM ({{node_gpus}}) t) AS gpus,
(SELECT coalesce(json_agg(row_to_json(t) ORDER BY t.name), '[]')
   FROM (SELECT c.name, c.state, c.reason, c.since FROM collector c WHERE c.org_id = n.org_id AND c.node_id = n.id) t) AS collectors,
(SELECT coalesce(json_agg(row_to_json(t) ORDER BY t.no), '[]')
   FROM (SELECT {{incident_fields}} FROM incident i WHERE i.org_id = n.org_id AND i.node_id = n.id AND i.closed_at IS NULL) t) AS incidents,
(SELECT row_to_json(t) FROM (SELECT {{repair_summary}} FROM repair r
   WHERE r.org_id = n.org_id AND r.node_id = n.id AND r.ended_at IS NULL) t) AS repair,
(SELECT row_to_json(t) FROM (SELECT k.kind, k.read_at, k.error, coalesce(s.state, 'unknown') AS state, coalesce(s.closed, false) AS closed,
                                    coalesce(s.reason, '') AS reason, coalesce(s.said, '') AS said, coalesce(s.jobs, '[]') AS jobs
   FROM cluster_scheduler k LEFT JOIN node_scheduler s ON s.org_id = n.org_id AND s.node_id = n.id
   WHERE k.org_id = n.org_id AND k.cluster_id = n.cluster_id) t) AS scheduler,
'ssh ' || CASE WHEN n.address ~ '^[0-9A-Za-z.:-]+$' AND n.address !~ '^-' THEN n.address ELSE n.name END AS ssh_command

-- name: node_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one
  LEFT JOIN (SELECT {{node_detail}} FROM node n {{node_joins}} WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL) t ON true;

-- $3 If-Match $4 actor $5 context $6 rack $7 leaf $8 partition $9 gpus_expected $10 schedulable $11 auto_repair $12 paused_until
-- $13 PDU $14 file server $15 role $16 fields present
-- name: node_update
WITH cur AS MATERIALIZED (
  SELECT {{node_base}}, 'paused_until' = ANY (string_to_array($16, ',')) AS pauses FROM node n
   WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL FOR UPDATE
), n AS (
  UPDATE node n SET rack = coalesce($6, n.rack), leaf = coalesce($7, n.leaf), partition = coalesce($8, n.partition),
         pdu = coalesce($13, n.pdu), file_server = coalesce($14, n.file_server), role = coalesce($15, n.role),
         gpus_expected = CASE WHEN 'gpus_expected' = ANY (string_to_array($16, ',')) THEN $9::integer ELSE n.gpus_expected END,
         schedulable = coalesce($10::boolean, n.schedulable),
         cordoned_by = CASE WHEN $10 IS NULL THEN n.cordoned_by END,
         auto_repair = coalesce($11::boolean, n.auto_repair),
         paused_until = CASE WHEN cur.pauses THEN $12::timestamptz ELSE n.paused_until END,
         paused_by = CASE WHEN cur.pauses THEN CASE WHEN $12 IS NOT NULL THEN $4 END ELSE n.paused_by END,
         version = n.version + 1, updated_at = now()
    FROM cur WHERE n.org_id = $1 AND n.id = cur.id AND cur.version = $3::bigint AND ($12::timestamptz IS NULL OR $12 > now())
  RETURNING {{node_base}}, n.boot_id, n.booted_at, n.ready_at, n.agent_version, n.driver_version, n.kernel, n.os_image, n.gpu_type, n.host_serial,
            n.address, n.cpus, n.memory_mib, n.paused_by, n.pdu, n.file_server, n.role, n.joined_at, n.created_at, n.updated_at
), act AS MATERIALIZED (
  SELECT {{node_detail}} FROM n {{node_joins}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, CASE WHEN $16 <> 'schedulable' THEN 'node.updated' WHEN n.schedulable THEN 'node.uncordoned' ELSE 'node.cordoned' END,
         n.cluster_id, n.id, $4, n.name || ' was changed: ' || replace($16, ',', ', '), jsonb_build_object('fields', string_to_array($16, ','))
    FROM head h, n
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'node.update', 'target', n.id, 'target_name', n.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(n)))::text
    FROM head h, n, cur c
)
SELECT CASE WHEN a.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN a.id IS NULL AND c.version = $3::bigint THEN '#/paused_until' END AS pointer,
       CASE WHEN a.id IS NULL AND c.version = $3::bigint THEN 'It must lie in the future.' END AS detail,
       coalesce(a.version, c.version) AS version, row_to_json(a)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN act a ON true;

-- Cordon and uncordon: no new work, or work again. Doing it twice changes nothing and tells nobody.
-- $3 key $4 fingerprint $5 actor $6 context $7 comment $8 true to uncordon
-- name: node_cordon
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT {{node_base}}, n.cordoned_by FROM node n
   WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL AND NOT EXISTS (SELECT FROM seen) FOR UPDATE
), n AS (
  UPDATE node n SET schedulable = $8::boolean, cordoned_by = NULL, version = n.version + 1, updated_at = now()
    FROM cur WHERE n.org_id = $1 AND n.id = cur.id AND (cur.schedulable <> $8 OR cur.cordoned_by IS NOT NULL)
  RETURNING {{node_base}}
), now_is AS (
  SELECT x.* FROM n x UNION ALL SELECT {{node_base}} FROM cur n WHERE NOT EXISTS (SELECT FROM n)
), act AS MATERIALIZED (
  SELECT {{node_summary}} FROM now_is n {{node_joins}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM n WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, CASE WHEN $8 THEN 'node.uncordoned' ELSE 'node.cordoned' END, n.cluster_id, n.id, $5,
         n.name || CASE WHEN $8 THEN ' takes new work again' ELSE ' takes no new work' END || coalesce(': ' || $7, ''),
         jsonb_build_object('comment', coalesce($7, '')) FROM head h, n
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', CASE WHEN $8 THEN 'node.uncordon' ELSE 'node.cordon' END,
                                              'target', n.id, 'target_name', n.name, 'outcome', 'done', 'comment', coalesce($7, ''),
                                              'before', row_to_json(c), 'after', row_to_json(n)))::text
    FROM head h, n, cur c
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $4 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;
