-- What schedulers know of nodes, and what they are asked. Muster's own wish is node.schedulable; here it meets the scheduler's state.

-- The settings that count for a node: the most specific policy as a whole. n node.
-- fragment: policy_of_node
SELECT p.settings FROM policy p
 WHERE p.org_id = $1 AND (p.cluster_id IS NULL OR p.cluster_id = n.cluster_id) AND (p.node_id IS NULL OR p.node_id = n.id)
 ORDER BY p.node_id NULLS LAST, p.cluster_id NULLS LAST LIMIT 1

-- Nothing runs on the node of repair r, as far as its scheduler said within a minute. Where there is none nothing is known to run.
-- fragment: repair_idle
NOT EXISTS (SELECT FROM cluster_scheduler xc LEFT JOIN node_scheduler xn ON xn.org_id = xc.org_id AND xn.node_id = r.node_id
             WHERE xc.org_id = r.org_id AND xc.cluster_id = r.cluster_id
               AND (xn.closed AND xn.state IN ('idle', 'down') AND xn.job_ids = '' AND xc.read_at > now() - interval '60 seconds') IS NOT TRUE)

-- The clusters of this org that have a scheduler: $2 their names, beginning with the org's: "main/gpu-1".
-- name: scheduler_clusters
-- role: loop
SELECT c.id, o.name AS org, c.name FROM org o JOIN cluster c ON c.org_id = $1
 WHERE o.id = $1 AND o.name || '/' || c.name = ANY ($2::text[]) ORDER BY c.id;

-- What is wished of each node of a cluster. $2 cluster $3 seconds that jobs may run on, and $4 grace, where no policy says it.
-- name: scheduler_wishes
-- role: loop
SELECT n.id, n.name, n.schedulable, coalesce(s.our_reason, '') AS our_reason,
       coalesce(r.state = 'draining' AND pol.settings ->> 'idle' = 'grace'
                AND r.state_since < now() - make_interval(secs => coalesce((pol.settings ->> 'idle_wait_seconds')::float8, $3)), false) AS evict,
       coalesce((pol.settings ->> 'grace_seconds')::bigint, $4::bigint) AS grace_seconds,
       coalesce(r.state_since < now() - make_interval(secs => coalesce((pol.settings ->> 'idle_wait_seconds')::float8, $3)
                                                              + coalesce((pol.settings ->> 'grace_seconds')::float8, $4)), false) AS grace_over,
       CASE WHEN r.id IS NULL THEN 'muster:cordon'
            ELSE 'muster:' || coalesce(i.check_id, 'manual') || ' repair ' || r.no || coalesce(' #' || i.no, '') END AS reason
  FROM node n LEFT JOIN node_scheduler s ON s.org_id = $1 AND s.node_id = n.id
  LEFT JOIN repair r ON r.org_id = $1 AND r.id = n.cordoned_by
  LEFT JOIN incident i ON i.org_id = $1 AND i.id = r.incident_id
  LEFT JOIN LATERAL ({{policy_of_node}}) pol ON true
 WHERE n.org_id = $1 AND n.cluster_id = $2::uuid AND n.removed_at IS NULL ORDER BY n.name;

-- Before a node is closed: the reason that will be ours. $2 node $3 cluster $4 reason.
-- name: scheduler_intend
-- role: loop
INSERT INTO node_scheduler AS s (org_id, node_id, cluster_id, state, closed, our_reason) VALUES ($1, $2::uuid, $3::uuid, 'unknown', false, $4)
ON CONFLICT (org_id, node_id) DO UPDATE SET our_reason = excluded.our_reason WHERE s.org_id = $1
RETURNING 1 AS n;

-- A reading, whole or failed. $2 cluster $3 kind $4 error, empty = none $5 array of {node_id, state, closed, reason, jobs, job_ids, said}.
-- Rows that are as they were are left alone.
-- name: scheduler_store
-- role: loop
WITH cl AS (
  INSERT INTO cluster_scheduler AS k (org_id, cluster_id, kind, tried_at, read_at, error)
  VALUES ($1, $2::uuid, $3, now(), CASE WHEN $4 = '' THEN now() END, $4)
  ON CONFLICT (org_id, cluster_id) DO UPDATE SET kind = excluded.kind, tried_at = now(), error = excluded.error,
         read_at = coalesce(excluded.read_at, k.read_at) WHERE k.org_id = $1
), t AS MATERIALIZED (
  SELECT t.node_id, t.state, t.closed, t.reason, t.jobs, t.job_ids, t.said
    FROM jsonb_to_recordset($5::jsonb) AS t(node_id uuid, state text, closed boolean, reason text, jobs jsonb, job_ids text, said text)
    JOIN node n ON n.org_id = $1 AND n.id = t.node_id AND n.cluster_id = $2::uuid
), up AS (
  INSERT INTO node_scheduler AS s (org_id, node_id, cluster_id, state, closed, reason, jobs, job_ids, said)
  SELECT $1, t.node_id, $2::uuid, t.state, t.closed, t.reason, t.jobs, t.job_ids, t.said FROM t
  ON CONFLICT (org_id, node_id) DO UPDATE
     SET state = excluded.state, closed = excluded.closed, reason = excluded.reason, jobs = excluded.jobs, job_ids = excluded.job_ids,
         said = excluded.said, cluster_id = excluded.cluster_id, changed_at = now(),
         our_reason = CASE WHEN excluded.closed THEN s.our_reason ELSE '' END
   WHERE s.org_id = $1
     AND (s.state, s.closed, s.reason, s.jobs, s.said, s.cluster_id) IS DISTINCT FROM
         (excluded.state, excluded.closed, excluded.reason, excluded.jobs, excluded.said, excluded.cluster_id)
  RETURNING 1
)
SELECT count(*) AS changed FROM up;

-- The scheduler of a cluster that is no longer configured is forgotten. $2 the clusters that are.
-- name: scheduler_forget
-- role: loop
WITH gone AS (
  DELETE FROM cluster_scheduler k WHERE k.org_id = $1 AND NOT (k.cluster_id = ANY ($2::uuid[])) RETURNING k.cluster_id
), nodes AS (
  DELETE FROM node_scheduler s USING gone WHERE s.org_id = $1 AND s.cluster_id = gone.cluster_id
)
SELECT count(*) AS n FROM gone;
