-- Every node of a cluster as one picture; server/handlers/node_grid.c writes it in columns.

-- At least one row comes back; its id is NULL when the cluster has no node. Numbers are whole: a timestamp's text costs more than the row.
-- name: node_grid
WITH head AS MATERIALIZED (
  SELECT h.event_seq, h.rollup_version, c.id AS known, r.version, r.at
    FROM org_head h LEFT JOIN cluster c ON c.org_id = $1 AND c.id = $2::uuid LEFT JOIN cluster_rollup r ON r.org_id = $1 AND r.cluster_id = c.id
   WHERE h.org_id = $1
)
SELECT h.event_seq, h.rollup_version, h.known IS NOT NULL AS known, h.version, h.at, n.id, n.name, n.state, n.warning, n.rack, n.leaf,
       date_part('epoch', now() - l.seen_at)::bigint AS age, n.interval_seconds, l.gpu_util_permille / 10 AS util,
       (100 * l.gpu_mem_used_mib::bigint / nullif(l.gpu_mem_all_mib, 0))::smallint AS mem, l.gpu_temp_max_c AS temp
  FROM head h
  LEFT JOIN (node n LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id)
    ON n.org_id = $1 AND n.cluster_id = $2::uuid AND n.removed_at IS NULL
 ORDER BY n.name COLLATE "C";
