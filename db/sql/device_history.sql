-- A part's and a machine's past by serial, wherever it was.

-- fragment: serial_incidents
SELECT i.id, i.no, i.cluster_id, i.node_id, n.name AS node_name, i.device, i.check_id, i.code, i.severity, {{incident_action}} AS action, i.node_fault,
       i.summary, i.count, i.first_at, i.last_at, i.closed_at, i.close_reason, CASE WHEN i.closed_at IS NULL THEN 'open' ELSE 'closed' END AS state

-- Where a part was, and what failed there. Incidents newest first, at most 200. $2 device
-- name: device_history
WITH d AS MATERIALIZED (
  SELECT d.type, d.serial FROM device d WHERE d.org_id = $1 AND d.id = $2::uuid
), places AS (
  SELECT p.id AS device_id, p.node_id, n.name AS node_name, n.cluster_id, p.pci, p.present, p.first_seen_at, p.last_seen_at
    FROM d JOIN device p ON p.org_id = $1 AND p.serial = d.serial AND p.type = d.type JOIN node n ON n.org_id = $1 AND n.id = p.node_id
   ORDER BY p.first_seen_at, p.id LIMIT 200
), faults AS (
  {{serial_incidents}}
    FROM d JOIN incident i ON i.org_id = $1 AND i.serial = d.serial JOIN node n ON n.org_id = $1 AND n.id = i.node_id
   WHERE d.serial <> '' ORDER BY i.no DESC LIMIT 200
)
SELECT CASE WHEN d.serial IS NULL THEN 404 ELSE 200 END AS status, h.event_seq + h.rollup_version AS version,
       json_build_object('type', d.type, 'serial', d.serial,
         'places', (SELECT coalesce(json_agg(row_to_json(p) ORDER BY p.first_seen_at, p.device_id), '[]') FROM places p),
         'incidents', (SELECT coalesce(json_agg(row_to_json(f) ORDER BY f.no DESC), '[]') FROM faults f))::text AS body
  FROM org_head h LEFT JOIN d ON true WHERE h.org_id = $1;

-- Parts and machines whose serial begins so, of the org. $2 beginning $3 limit
-- name: serial_find
WITH x AS (
  SELECT 'device' AS kind, d.type, d.serial, d.id, d.node_id, n.name AS node_name, n.cluster_id, d.present, d.first_seen_at, d.last_seen_at
    FROM device d JOIN node n ON n.org_id = $1 AND n.id = d.node_id
   WHERE d.org_id = $1 AND starts_with(d.serial, $2)
  UNION ALL
  SELECT 'node', 'node', n.host_serial, n.id, n.id, n.name, n.cluster_id, n.removed_at IS NULL, n.created_at, coalesce(l.seen_at, n.updated_at)
    FROM node n LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id
   WHERE n.org_id = $1 AND n.host_serial <> '' AND starts_with(n.host_serial, $2)
), page AS (
  SELECT x.* FROM x ORDER BY x.last_seen_at DESC, x.id LIMIT coalesce($3::int, 50)
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT concat('{"items":[', string_agg(row_to_json(p)::text, ',' ORDER BY p.last_seen_at DESC, p.id), ']}') FROM page p) AS body
  FROM org_head h WHERE h.org_id = $1;

-- A machine's past under every name it had, by the serial of its host. $2 node
-- name: node_serial_history
WITH m AS MATERIALIZED (
  SELECT n.id, n.host_serial FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid
), nodes AS MATERIALIZED (
  SELECT n.id, n.name, n.cluster_id, n.host_serial, n.created_at, n.joined_at, n.removed_at
    FROM m JOIN node n ON n.org_id = $1 AND (n.id = m.id OR m.host_serial <> '' AND n.host_serial = m.host_serial)
   ORDER BY n.created_at, n.id LIMIT 200
), faults AS (
  {{serial_incidents}}
    FROM nodes n JOIN incident i ON i.org_id = $1 AND i.node_id = n.id ORDER BY i.no DESC LIMIT 200
)
SELECT CASE WHEN m.id IS NULL THEN 404 ELSE 200 END AS status, h.event_seq + h.rollup_version AS version,
       json_build_object('host_serial', m.host_serial,
         'nodes', (SELECT coalesce(json_agg(row_to_json(x) ORDER BY x.created_at, x.id), '[]') FROM nodes x),
         'incidents', (SELECT coalesce(json_agg(row_to_json(f) ORDER BY f.no DESC), '[]') FROM faults f))::text AS body
  FROM org_head h LEFT JOIN m ON true WHERE h.org_id = $1;
