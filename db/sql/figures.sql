-- Figures: what the overview shows, the history, and the anchors of the past.

-- Sums over a node's GPUs. Subscripts, because one unnest a node costs three times as much: 550 against 180 ms for
-- 100,000 nodes of 8 GPUs. Machines of more than 8 GPUs take the slow way.
-- fragment: gpu_util_sum
CASE WHEN cardinality(l.gpu_util) > 8 THEN (SELECT sum(x)::integer FROM unnest(l.gpu_util) x)
  ELSE coalesce(l.gpu_util[1], 0) + coalesce(l.gpu_util[2], 0) + coalesce(l.gpu_util[3], 0) + coalesce(l.gpu_util[4], 0)
  + coalesce(l.gpu_util[5], 0) + coalesce(l.gpu_util[6], 0) + coalesce(l.gpu_util[7], 0) + coalesce(l.gpu_util[8], 0) END

-- fragment: gpu_mem_sum
CASE WHEN cardinality(l.gpu_mem_mib) > 8 THEN (SELECT sum(x)::integer FROM unnest(l.gpu_mem_mib) x)
  ELSE coalesce(l.gpu_mem_mib[1], 0) + coalesce(l.gpu_mem_mib[2], 0) + coalesce(l.gpu_mem_mib[3], 0) + coalesce(l.gpu_mem_mib[4], 0)
  + coalesce(l.gpu_mem_mib[5], 0) + coalesce(l.gpu_mem_mib[6], 0) + coalesce(l.gpu_mem_mib[7], 0) + coalesce(l.gpu_mem_mib[8], 0) END

-- fragment: gpu_mem_total_sum
CASE WHEN cardinality(l.gpu_mem_total_mib) > 8 THEN (SELECT sum(x)::integer FROM unnest(l.gpu_mem_total_mib) x)
  ELSE coalesce(l.gpu_mem_total_mib[1], 0) + coalesce(l.gpu_mem_total_mib[2], 0) + coalesce(l.gpu_mem_total_mib[3], 0) + coalesce(l.gpu_mem_total_mib[4], 0)
  + coalesce(l.gpu_mem_total_mib[5], 0) + coalesce(l.gpu_mem_total_mib[6], 0) + coalesce(l.gpu_mem_total_mib[7], 0) + coalesce(l.gpu_mem_total_mib[8], 0) END

-- fragment: gpu_power_sum
CASE WHEN cardinality(l.gpu_power_w) > 8 THEN (SELECT sum(x)::integer FROM unnest(l.gpu_power_w) x)
  ELSE coalesce(l.gpu_power_w[1], 0) + coalesce(l.gpu_power_w[2], 0) + coalesce(l.gpu_power_w[3], 0) + coalesce(l.gpu_power_w[4], 0)
  + coalesce(l.gpu_power_w[5], 0) + coalesce(l.gpu_power_w[6], 0) + coalesce(l.gpu_power_w[7], 0) + coalesce(l.gpu_power_w[8], 0) END

-- fragment: gpu_util_read
CASE WHEN cardinality(l.gpu_util) > 8 THEN (SELECT count(x)::integer FROM unnest(l.gpu_util) x)
  ELSE num_nonnulls(l.gpu_util[1], l.gpu_util[2], l.gpu_util[3], l.gpu_util[4], l.gpu_util[5], l.gpu_util[6], l.gpu_util[7], l.gpu_util[8]) END

-- One row a cluster, written only where a figure moved. One replica at a time, and not twice within half of $2 ms.
-- Readings older than three intervals are no readings. A cluster's row is made with the cluster.
-- name: rollup_refresh
-- role: loop
WITH turn AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtextextended('muster.rollup ' || $1::uuid::text, 0)) AS mine
   WHERE NOT EXISTS (SELECT FROM cluster_rollup r WHERE r.org_id = $1 AND r.at > now() - make_interval(secs => $2::float8 / 2000))
), node_now AS (
  SELECT n.cluster_id, n.state, n.warning, n.interval_seconds, l.seen_at > now() - interval '20 s' AS seen_20s,
         greatest(coalesce(cardinality(l.gpu_util), 0), coalesce(n.gpus_expected, 0)) AS gpus,
         l.seen_at > now() - make_interval(secs => 3 * n.interval_seconds) AS fresh,
         {{gpu_util_read}} AS gpus_read, {{gpu_util_sum}} AS util,
         -- the writer's sums: an array is opened for each of its elements that is read
         CASE WHEN l.gpu_mem_mib IS NOT NULL THEN coalesce(l.gpu_mem_used_mib, 0) END AS gpu_mem,
         CASE WHEN l.gpu_mem_total_mib IS NOT NULL THEN coalesce(l.gpu_mem_all_mib, 0) END AS gpu_mem_total,
         CASE WHEN l.gpu_power_w IS NOT NULL THEN {{gpu_power_sum}} END AS power,
         l.cpu_permille, l.mem_used_mib, l.mem_total_mib,
         coalesce(l.net_rx_mbps + l.net_tx_mbps, l.net_rx_mbps, l.net_tx_mbps) AS net,
         coalesce(l.fabric_rx_mbps + l.fabric_tx_mbps, l.fabric_rx_mbps, l.fabric_tx_mbps) AS fabric
    FROM turn JOIN node n ON turn.mine LEFT JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
   WHERE n.org_id = $1 AND n.removed_at IS NULL
  OFFSET 0  -- a fence: without it each sum below evaluates its expression anew
), part AS MATERIALIZED (
  SELECT v.cluster_id, v.state, v.fresh IS TRUE AS fresh, count(*) AS nodes, count(*) FILTER (WHERE v.warning) AS warning,
         count(*) FILTER (WHERE v.seen_20s) AS seen_20s, sum(v.gpus) AS gpus, sum(v.gpus_read) AS gpus_read, sum(v.util) AS util,
         sum(v.gpu_mem) AS gpu_mem, sum(v.gpu_mem_total) AS gpu_mem_total, sum(v.cpu_permille) AS cpu, count(v.cpu_permille) AS cpu_read,
         sum(v.mem_used_mib) AS mem_used, sum(v.mem_total_mib) AS mem_total, sum(v.net) AS net, sum(v.fabric) AS fabric, sum(v.power) AS power
    FROM node_now v GROUP BY v.cluster_id, v.state, v.fresh IS TRUE
), sum AS MATERIALIZED (
  SELECT p.cluster_id, sum(p.nodes) AS nodes, coalesce(sum(p.nodes) FILTER (WHERE p.state = 'pending'), 0) AS pending,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'starting'), 0) AS starting,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'healthy'), 0) AS healthy,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'unhealthy'), 0) AS unhealthy,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'repairing'), 0) AS repairing,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'paused'), 0) AS paused,
         coalesce(sum(p.nodes) FILTER (WHERE p.state = 'unknown'), 0) AS unknown,
         sum(p.warning) AS warning, sum(p.seen_20s) AS seen_20s, sum(p.gpus) AS gpus,
         coalesce(sum(p.gpus_read) FILTER (WHERE p.fresh), 0) AS gpus_read,
         (sum(p.util) FILTER (WHERE p.fresh)::float8 / nullif(100 * sum(p.gpus_read) FILTER (WHERE p.fresh), 0)::float8)::real AS gpu_busy_ratio,
         sum(p.gpu_mem) FILTER (WHERE p.fresh) AS gpu_mem_used_mib, sum(p.gpu_mem_total) FILTER (WHERE p.fresh) AS gpu_mem_total_mib,
         (sum(p.cpu) FILTER (WHERE p.fresh)::float8 / nullif(1000 * sum(p.cpu_read) FILTER (WHERE p.fresh), 0)::float8)::real AS cpu_ratio,
         sum(p.mem_used) FILTER (WHERE p.fresh) AS mem_used_mib, sum(p.mem_total) FILTER (WHERE p.fresh) AS mem_total_mib,
         sum(p.net) FILTER (WHERE p.fresh) AS net_mbps, sum(p.fabric) FILTER (WHERE p.fresh) AS fabric_mbps,
         sum(p.power) FILTER (WHERE p.fresh) AS power_w
    FROM part p GROUP BY p.cluster_id
), differs AS (
  -- What a node says that its cluster does not want; what a node does not say is no drift.
  SELECT n.cluster_id, v.field, v.wanted, v.value, count(*) AS nodes
    FROM turn JOIN cluster c ON turn.mine JOIN node n ON n.org_id = c.org_id AND n.cluster_id = c.id AND n.removed_at IS NULL
   CROSS JOIN LATERAL (VALUES ('driver_version', c.driver_version, n.driver_version), ('gpu_type', c.gpu_type, n.gpu_type),
                              ('os_image', c.os_image, n.os_image)) AS v(field, wanted, value)
   WHERE c.org_id = $1 AND v.wanted <> '' AND v.value <> '' AND v.value <> v.wanted
   GROUP BY n.cluster_id, v.field, v.wanted, v.value
), drift AS (
  SELECT f.cluster_id, jsonb_agg(jsonb_build_object('field', f.field, 'wanted', f.wanted, 'seen', f.seen) ORDER BY f.field) AS drift
    FROM (SELECT d.cluster_id, d.field, d.wanted,
                 jsonb_agg(jsonb_build_object('value', d.value, 'nodes', d.nodes) ORDER BY d.nodes DESC, d.value) AS seen
            FROM differs d GROUP BY d.cluster_id, d.field, d.wanted) f
   GROUP BY f.cluster_id
), want AS (
  SELECT c.id, coalesce(d.drift, '[]') AS drift, coalesce(s.nodes, 0) AS nodes, coalesce(s.pending, 0) AS pending, coalesce(s.starting, 0) AS starting,
         coalesce(s.healthy, 0) AS healthy, coalesce(s.unhealthy, 0) AS unhealthy, coalesce(s.repairing, 0) AS repairing,
         coalesce(s.paused, 0) AS paused, coalesce(s.unknown, 0) AS unknown, coalesce(s.warning, 0) AS warning,
         coalesce(s.seen_20s, 0) AS seen_20s, coalesce(s.gpus, 0) AS gpus, coalesce(s.gpus_read, 0) AS gpus_read, s.gpu_busy_ratio,
         s.gpu_mem_used_mib, s.gpu_mem_total_mib, s.cpu_ratio, s.mem_used_mib, s.mem_total_mib, s.net_mbps, s.fabric_mbps, s.power_w
    FROM turn JOIN cluster c ON turn.mine LEFT JOIN sum s ON s.cluster_id = c.id LEFT JOIN drift d ON d.cluster_id = c.id WHERE c.org_id = $1
), upd AS (
  UPDATE cluster_rollup r
     SET version = r.version + 1, at = now(), drift = w.drift, nodes = w.nodes, pending = w.pending, starting = w.starting, healthy = w.healthy,
         unhealthy = w.unhealthy, repairing = w.repairing, paused = w.paused, unknown = w.unknown, warning = w.warning,
         seen_20s = w.seen_20s, gpus = w.gpus, gpus_read = w.gpus_read, gpu_busy_ratio = w.gpu_busy_ratio,
         gpu_mem_used_mib = w.gpu_mem_used_mib, gpu_mem_total_mib = w.gpu_mem_total_mib, cpu_ratio = w.cpu_ratio,
         mem_used_mib = w.mem_used_mib, mem_total_mib = w.mem_total_mib, net_mbps = w.net_mbps, fabric_mbps = w.fabric_mbps,
         power_w = w.power_w
    FROM want w
   WHERE r.org_id = $1 AND r.cluster_id = w.id
     AND (r.drift, r.nodes, r.pending, r.starting, r.healthy, r.unhealthy, r.repairing, r.paused, r.unknown, r.warning, r.seen_20s, r.gpus,
          r.gpus_read, r.gpu_busy_ratio, r.gpu_mem_used_mib, r.gpu_mem_total_mib, r.cpu_ratio, r.mem_used_mib, r.mem_total_mib,
          r.net_mbps, r.fabric_mbps, r.power_w)
         IS DISTINCT FROM
         (w.drift, w.nodes, w.pending, w.starting, w.healthy, w.unhealthy, w.repairing, w.paused, w.unknown, w.warning, w.seen_20s, w.gpus,
          w.gpus_read, w.gpu_busy_ratio, w.gpu_mem_used_mib, w.gpu_mem_total_mib, w.cpu_ratio, w.mem_used_mib, w.mem_total_mib,
          w.net_mbps, w.fabric_mbps, w.power_w)
  RETURNING r.cluster_id
), head AS (
  UPDATE org_head h SET rollup_version = h.rollup_version + 1 WHERE h.org_id = $1 AND EXISTS (SELECT FROM upd) RETURNING h.rollup_version
)
SELECT (SELECT count(*) FROM upd) AS clusters, (SELECT count(*) FROM head) AS moved;

-- One row a cluster, sample and 1,024 slots. $2 seconds between samples. The sample's time is the last full step; whoever
-- comes first writes it, and readings older than one step leave a gap.
-- name: history_sample
-- role: loop
WITH step AS MATERIALIZED (
  SELECT to_timestamp(floor(extract(epoch FROM now()) / $2::integer) * $2::integer) AS at
), due AS MATERIALIZED (
  SELECT c.id, step.at, c.next_slot FROM step, cluster c
   WHERE c.org_id = $1 AND c.next_slot > 0
     AND NOT EXISTS (SELECT FROM cluster_history h WHERE h.org_id = $1 AND h.cluster_id = c.id AND h.at = step.at)
     AND pg_try_advisory_xact_lock(hashtextextended('muster.history ' || $1::uuid::text, 0))
), reading AS MATERIALIZED (
  SELECT n.cluster_id, n.slot, ({{gpu_util_sum}} / nullif({{gpu_util_read}}, 0))::smallint AS util,
         (1000 * CASE WHEN l.gpu_mem_mib IS NOT NULL THEN {{gpu_mem_sum}} END::bigint
               / nullif({{gpu_mem_total_sum}}, 0))::smallint AS mem,
         l.cpu_permille AS cpu, coalesce(l.fabric_rx_mbps + l.fabric_tx_mbps, l.net_rx_mbps + l.net_tx_mbps) AS net
    FROM node n JOIN node_latest l ON l.org_id = n.org_id AND l.node_id = n.id
   WHERE n.org_id = $1 AND n.removed_at IS NULL AND l.seen_at > now() - make_interval(secs => $2::integer)
     AND EXISTS (SELECT FROM due)
), ins AS (
  INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps)
  SELECT $1, d.id, d.at, s.slot / 1024, array_agg(v.util ORDER BY s.slot), array_agg(v.mem ORDER BY s.slot),
         array_agg(v.cpu ORDER BY s.slot), array_agg(v.net ORDER BY s.slot)
    FROM due d CROSS JOIN LATERAL generate_series(0, d.next_slot - 1) AS s(slot)
    LEFT JOIN reading v ON v.cluster_id = d.id AND v.slot = s.slot
   GROUP BY d.id, d.at, s.slot / 1024
  ON CONFLICT (org_id, cluster_id, at, chunk) DO NOTHING
  RETURNING 1
)
SELECT (SELECT count(*) FROM ins) AS rows;

-- The state of all nodes at the start of a day, from which any moment of that day is found. The first of a cluster is written at once.
-- name: anchor_write
-- role: loop
INSERT INTO state_anchor (org_id, cluster_id, at, node_ids, states)
SELECT $1, n.cluster_id, now(), array_agg(n.id ORDER BY n.id), array_agg(n.state ORDER BY n.id)
  FROM node n
 WHERE n.org_id = $1 AND n.removed_at IS NULL
   AND NOT EXISTS (SELECT FROM state_anchor a WHERE a.org_id = $1 AND a.cluster_id = n.cluster_id AND a.at >= date_trunc('day', now(), 'UTC'))
 GROUP BY n.cluster_id
ON CONFLICT (org_id, cluster_id, at) DO NOTHING;

-- Plans that were made for small tables go as soon as these have grown.
-- name: statistics_refresh
-- role: loop
-- scope: global
SELECT statistics_refresh() AS made;

-- name: partitions_make
-- role: loop
-- scope: global
SELECT partitions_make(14) AS made;

-- $1 days that events are kept $2 days of history; 0 = for ever.
-- name: partition_drop
-- role: loop
-- scope: global
SELECT partition_drop($1::integer, $2::integer) AS dropped;

-- How many days ago the oldest partition of each table begins.
-- name: partitions_oldest
-- role: loop
-- scope: global
SELECT t.relname::text AS name,
       extract(day FROM now() - min(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([^'']+)''\)')::timestamptz))::integer AS days
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class t ON t.oid = i.inhparent
  JOIN pg_namespace s ON s.oid = t.relnamespace AND s.nspname = 'muster'
 WHERE t.relkind = 'p' GROUP BY t.relname ORDER BY t.relname;

-- name: idempotency_prune
-- role: loop
WITH old AS MATERIALIZED (
  SELECT i.key FROM idempotency i WHERE i.org_id = $1 AND i.created_at < now() - interval '24 hours' LIMIT 5000 FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency i USING old WHERE i.org_id = $1 AND i.key = old.key;

-- name: session_prune
-- role: loop
DELETE FROM session s WHERE s.org_id = $1 AND (s.expires_at < now() OR s.seen_at < now() - interval '8 hours');

-- name: agent_token_prune
-- role: loop
WITH old AS MATERIALIZED (
  SELECT t.token_hash FROM agent_token t WHERE t.org_id = $1 AND t.expires_at < now() LIMIT 10000
)
DELETE FROM agent_token t USING old WHERE t.org_id = $1 AND t.token_hash = old.token_hash;

-- Kept for a week after their end, so that a list can say what became of them.
-- name: join_token_prune
-- role: loop
DELETE FROM join_token t WHERE t.org_id = $1 AND t.expires_at < now() - interval '7 days';

-- name: sign_in_link_prune
-- role: loop
-- scope: global
DELETE FROM sign_in_link l WHERE l.expires_at < now() - interval '1 day';

-- Marks of older boots, a day after the present one began: until then an agent may still send what it had kept.
-- name: stream_prune
-- role: loop
DELETE FROM node_stream s USING node n
 WHERE s.org_id = $1 AND n.org_id = $1 AND n.id = s.node_id AND n.boot_id IS NOT NULL AND s.boot_id <> n.boot_id
   AND n.booted_at < now() - interval '1 day';
