-- The past: samples of the last days, transitions, and the states of all nodes at any moment.

-- Means over the nodes of a cluster, one row a bucket that has samples. $2 cluster $3 since $4 until $5 step in seconds
-- name: cluster_history
WITH s AS (
  SELECT floor(extract(epoch FROM h.at) / $5::int)::bigint * $5::int AS at, h.at AS sample, x.util, x.utils, x.mem, x.mems, x.cpu, x.cpus,
         x.net, x.nets, greatest(x.utils, x.mems, x.cpus, x.nets) AS nodes
    FROM cluster_history h
   CROSS JOIN LATERAL (SELECT sum(u.util) AS util, count(u.util) AS utils, sum(u.mem) AS mem, count(u.mem) AS mems, sum(u.cpu) AS cpu,
                              count(u.cpu) AS cpus, sum(u.net) AS net, count(u.net) AS nets
                         FROM (SELECT unnest(h.gpu_util) AS util, unnest(h.gpu_mem_permille) AS mem, unnest(h.cpu_permille) AS cpu,
                                      unnest(h.net_mbps) AS net) u) x  -- in the list, not in FROM: half the time
   WHERE h.org_id = $1 AND h.cluster_id = $2::uuid AND h.at >= $3::timestamptz AND h.at < $4::timestamptz
)
SELECT s.at, round(sum(s.util) / nullif(sum(s.utils), 0) / 100, 4) AS gpu_busy_ratio,
       round(sum(s.mem) / nullif(sum(s.mems), 0) / 1000, 4) AS gpu_mem_ratio, round(sum(s.cpu) / nullif(sum(s.cpus), 0) / 1000, 4) AS cpu_ratio,
       round(sum(s.net) / nullif(sum(s.nets), 0)) AS net_mbps, round(sum(s.nodes) / count(DISTINCT s.sample)) AS nodes_read
  FROM s GROUP BY s.at ORDER BY s.at;

-- One node: its place in each array. $2 node $3 since $4 until $5 step in seconds
-- name: node_history
WITH n AS MATERIALIZED (
  SELECT n.cluster_id, n.slot / 1024 AS chunk, n.slot % 1024 + 1 AS i, n.created_at FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid
)
SELECT floor(extract(epoch FROM h.at) / $5::int)::bigint * $5::int AS at, round(avg(h.gpu_util[n.i]) / 100, 4) AS gpu_util_ratio,
       round(avg(h.gpu_mem_permille[n.i]) / 1000, 4) AS gpu_mem_ratio, round(avg(h.cpu_permille[n.i]) / 1000, 4) AS cpu_ratio,
       round(avg(h.net_mbps[n.i])) AS net_mbps
  FROM n JOIN cluster_history h ON h.org_id = $1 AND h.cluster_id = n.cluster_id AND h.chunk = n.chunk
   AND h.at >= greatest($3::timestamptz, n.created_at) AND h.at < $4::timestamptz
 GROUP BY 1 ORDER BY 1;

-- name: cluster_known
SELECT h.event_seq, h.rollup_version, h.event_seq + h.rollup_version AS version FROM cluster c JOIN org_head h ON h.org_id = c.org_id
 WHERE c.org_id = $1 AND c.id = $2::uuid;

-- name: node_known
SELECT h.event_seq, h.rollup_version, h.event_seq + h.rollup_version AS version FROM node n JOIN org_head h ON h.org_id = n.org_id
 WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL;

-- The state at `since`, then each change, at most 2,000. $2 node $3 since $4 until
-- name: node_transitions
WITH n AS MATERIALIZED (
  SELECT n.id FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL
), t AS (
  (SELECT $3::timestamptz AS at, x.state, x.reason FROM n JOIN node_transition x ON x.org_id = $1 AND x.node_id = n.id AND x.at <= $3::timestamptz
    ORDER BY x.at DESC LIMIT 1)
  UNION ALL
  (SELECT x.at, x.state, x.reason FROM n JOIN node_transition x ON x.org_id = $1 AND x.node_id = n.id AND x.at > $3::timestamptz
      AND x.at < $4::timestamptz ORDER BY x.at LIMIT 2000)
)
SELECT CASE WHEN EXISTS (SELECT FROM n) THEN 200 ELSE 404 END AS status, h.event_seq + h.rollup_version AS version,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.at), ']}') FROM t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- All nodes at a past moment: the anchor of that day and what changed since. $2 cluster $3 at
-- name: cluster_as_of
WITH a AS MATERIALIZED (
  SELECT s.at, s.node_ids, s.states FROM state_anchor s WHERE s.org_id = $1 AND s.cluster_id = $2::uuid AND s.at <= $3::timestamptz
   ORDER BY s.at DESC LIMIT 1
), d AS (
  SELECT DISTINCT ON (x.node_id) x.node_id, x.state FROM node_transition x
   WHERE x.org_id = $1 AND x.cluster_id = $2::uuid AND x.at > CASE WHEN EXISTS (SELECT FROM a) THEN (SELECT a.at FROM a) ELSE '-infinity' END AND x.at <= $3::timestamptz
   ORDER BY x.node_id, x.at DESC
), s AS (
  SELECT coalesce(u.id, d.node_id) AS id, coalesce(d.state, u.state) AS state
    FROM (SELECT u.id, u.state FROM a CROSS JOIN unnest(a.node_ids, a.states) u(id, state)) u FULL JOIN d ON d.node_id = u.id
), t AS (
  SELECT n.id, n.name, s.state FROM s JOIN node n ON n.org_id = $1 AND n.id = s.id WHERE s.state <> 'removed'
)
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status,
       (SELECT concat('{"at":', to_json($3::timestamptz), ',"nodes":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.name COLLATE "C"), ']}') FROM t) AS body;
