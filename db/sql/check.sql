-- Results by check and time, from incidents that overlap each interval and from the samples that say we could see.

-- Rows of three kinds for server/handlers/check.c: 'data' an interval with samples; 'bad' a check's worst severity in an interval and the
-- node-seconds lost there; 'worst' the open incidents to name, three a check; 'source' on how many nodes the collector of a name works.
-- At least the 'head' row comes back. $2 cluster $3 since $4 until $5 buckets
-- name: check_matrix
WITH w AS MATERIALIZED (
  SELECT c.id, extract(epoch FROM $4::timestamptz - $3::timestamptz) / $5::int AS seconds, r.nodes
    FROM cluster c JOIN cluster_rollup r ON r.org_id = c.org_id AND r.cluster_id = c.id WHERE c.org_id = $1 AND c.id = $2::uuid
), i AS MATERIALIZED (
  SELECT i.check_id, i.node_id, i.severity = 'critical' OR i.node_fault AS failed, i.summary, i.closed_at IS NULL AS is_open, i.no,
         greatest(i.first_at, $3::timestamptz) AS a, least(coalesce(i.closed_at, now()), $4::timestamptz) AS z
    FROM w JOIN incident i ON i.org_id = $1 AND i.cluster_id = w.id AND i.first_at < $4::timestamptz
     AND (i.closed_at IS NULL OR i.closed_at >= $3::timestamptz) AND i.mode = 'live' AND i.node_id IS NOT NULL
), b AS (
  SELECT i.check_id, x.b, bool_or(i.failed) AS failed,
         sum(extract(epoch FROM least(i.z, $3::timestamptz + (x.b + 1) * w.seconds * interval '1 second')
                              - greatest(i.a, $3::timestamptz + x.b * w.seconds * interval '1 second'))) AS lost
    FROM i CROSS JOIN w CROSS JOIN LATERAL generate_series(floor(extract(epoch FROM i.a - $3::timestamptz) / w.seconds)::integer,
           least($5::int - 1, floor(extract(epoch FROM greatest(i.z, i.a) - $3::timestamptz) / w.seconds)::integer)) x(b)
   GROUP BY i.check_id, x.b
), o AS (
  SELECT i.check_id, i.node_id, i.summary, i.failed, row_number() OVER (PARTITION BY i.check_id ORDER BY i.failed DESC, i.no) AS n FROM i WHERE i.is_open
)
SELECT u.kind, u.check_id, u.n, u.node_id, u.name, u.summary, u.failed, u.seconds, u.version FROM (
SELECT 'head' AS kind, NULL::text AS check_id, w.nodes AS n, NULL::uuid AS node_id, NULL::text AS name, NULL::text AS summary, NULL::boolean AS failed,
       w.seconds::float8 AS seconds, h.event_seq + h.rollup_version AS version FROM w, org_head h WHERE h.org_id = $1
UNION ALL
SELECT DISTINCT 'data', NULL, floor(extract(epoch FROM s.at - $3::timestamptz) / w.seconds)::integer, NULL::uuid, NULL, NULL, NULL::boolean, NULL::float8, NULL::bigint
  FROM w JOIN cluster_history s ON s.org_id = $1 AND s.cluster_id = w.id AND s.at >= $3::timestamptz AND s.at < $4::timestamptz
UNION ALL
SELECT 'bad', b.check_id, b.b, NULL, NULL, NULL, b.failed, b.lost::float8, NULL FROM b
UNION ALL
SELECT 'worst', o.check_id, o.n, o.node_id, n.name, o.summary, o.failed, NULL, NULL FROM o JOIN node n ON n.org_id = $1 AND n.id = o.node_id WHERE o.n <= 3
UNION ALL
SELECT 'source', NULL, count(*) FILTER (WHERE c.state = 'ok'), NULL, c.name, NULL, NULL, NULL, NULL
  FROM w JOIN node n ON n.org_id = $1 AND n.cluster_id = w.id AND n.removed_at IS NULL
  JOIN collector c ON c.org_id = $1 AND c.node_id = n.id GROUP BY c.name
) u ORDER BY u.kind <> 'head', u.kind, u.check_id, u.n;
