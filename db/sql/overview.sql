-- A cluster's first page: one row of the roll-up, and what changes only with an event, which server/handlers/overview.c keeps between them.

-- name: overview_base
SELECT {{cluster_fields}}, r.version AS rollup_version_of_cluster, r.at, r.nodes, r.pending, r.starting, r.healthy, r.unhealthy, r.repairing,
       r.paused, r.unknown, r.warning, r.seen_20s, r.gpus, r.gpus_read, r.gpu_busy_ratio, r.gpu_mem_used_mib, r.gpu_mem_total_mib, r.cpu_ratio,
       r.mem_used_mib, r.mem_total_mib, r.net_mbps, r.fabric_mbps, r.power_w, h.event_seq, h.rollup_version
  FROM cluster c JOIN org_head h ON h.org_id = $1 JOIN cluster_rollup r ON r.org_id = $1 AND r.cluster_id = c.id
 WHERE c.org_id = $1 AND c.id = $2::uuid;

-- The worst nodes, the repairs that wait, the last changes, drift: members of a JSON object, and the counters they are exact for.
-- name: overview_parts
WITH bad AS MATERIALIZED (
  SELECT n.org_id, n.id, n.name, n.state, n.reason, n.state_since, n.warning,
         array_position(ARRAY['unhealthy', 'unknown', 'repairing', 'starting', 'paused', 'pending'], n.state) AS rank
    FROM node n WHERE n.org_id = $1 AND n.cluster_id = $2::uuid AND n.state <> 'healthy' AND n.removed_at IS NULL
   ORDER BY 8, n.state_since LIMIT 5
), worst AS (
  SELECT n.id AS node_id, n.name, n.state, n.reason, n.state_since, n.warning, {{node_incident_id}} AS incident_id, r.id AS repair_id,
         coalesce(r.action, (SELECT i.action FROM incident i WHERE i.org_id = n.org_id AND i.node_id = n.id AND i.closed_at IS NULL
                              ORDER BY i.node_fault DESC, i.severity = 'critical' DESC, i.no LIMIT 1)) AS action
    FROM bad n LEFT JOIN repair r ON r.org_id = n.org_id AND r.node_id = n.id AND r.ended_at IS NULL ORDER BY n.rank, n.state_since
), wait AS MATERIALIZED (
  SELECT r.id, r.created_at FROM repair r
   WHERE r.org_id = $1 AND r.cluster_id = $2::uuid AND r.state = 'proposed' AND r.ended_at IS NULL
), changes AS MATERIALIZED (
  SELECT {{event_columns}} FROM event e WHERE e.org_id = $1 AND e.cluster_id = $2::uuid ORDER BY e.at DESC, e.seq DESC LIMIT 20
)
SELECT h.event_seq, h.rollup_version,
       concat('"worst":[', (SELECT string_agg(row_to_json(w)::text, ',') FROM worst w),
              '],"waiting":[', (SELECT string_agg(row_to_json(u)::text, ',' ORDER BY u.created_at, u.id)
                 FROM (SELECT {{repair_summary}} FROM repair r WHERE r.org_id = $1 AND r.id IN (SELECT x.id FROM wait x ORDER BY x.created_at, x.id LIMIT 5)) u),
              '],"waiting_count":', (SELECT count(*) FROM wait),
              ',"changes":[', (SELECT string_agg(row_to_json(u)::text, ',' ORDER BY u.seq DESC) FROM (SELECT {{event_fields}} FROM changes e) u),
              '],"last_change":', coalesce((SELECT row_to_json(u)::text FROM (SELECT {{event_fields}} FROM changes e ORDER BY e.seq DESC LIMIT 1) u), 'null'),
              ',"drift":', r.drift) AS parts
  FROM org_head h JOIN cluster_rollup r ON r.org_id = $1 AND r.cluster_id = $2::uuid WHERE h.org_id = $1;
