-- Orders to the controllers of nodes: found by a loop, claimed and carried out on a thread of the pool.

-- Orders that nobody took yet, and those whose server was gone before it told how they ended: its lease ran out. Before that the
-- leases of this server's own orders are renewed. $2 this server $3 seconds of a lease
-- name: machine_orders
-- role: loop
WITH beat AS (
  UPDATE command c SET lease_until = now() + make_interval(secs => $3::float8)
   WHERE c.org_id = $1 AND c.executor = 'machine' AND c.state = 'sent' AND c.ended_at IS NULL AND c.holder = $2::uuid AND c.lease_until > now()
     AND c.lease_until < now() + make_interval(secs => $3::float8 * 2 / 3) AND c.deadline_at > now()
)
SELECT c.id, c.state = 'sent' AS cut_off FROM command c
 WHERE c.org_id = $1 AND c.executor = 'machine' AND c.ended_at IS NULL
   AND ((c.state = 'ready' AND c.deadline_at > now())
        OR (c.state = 'sent' AND c.result = '' AND least(c.lease_until, c.deadline_at) < now()))
 ORDER BY c.created_at LIMIT 32;

-- One server takes it. $2 order $3 seconds in which its end must be told $4 it was cut off $5 this server $6 seconds of a lease
-- name: machine_claim
WITH mine AS (
  UPDATE command c SET state = 'sent', sent_at = coalesce(c.sent_at, now()), result = CASE WHEN $4::boolean THEN 'Looking at what it left.' ELSE '' END,
         deadline_at = CASE WHEN $4::boolean THEN c.deadline_at ELSE now() + make_interval(secs => $3::float8) END,
         holder = $5::uuid, lease_until = now() + make_interval(secs => $6::float8)
    FROM repair r
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'machine' AND c.ended_at IS NULL AND r.org_id = $1 AND r.id = c.repair_id
     AND ($4::boolean OR ({{repair_stop}} IS NULL AND {{repair_idle}}))
     AND CASE WHEN $4::boolean THEN c.state = 'sent' AND c.result = '' AND least(c.lease_until, c.deadline_at) < now()
              ELSE c.state = 'ready' AND c.deadline_at > now() END
  RETURNING c.node_id
)
SELECT o.name AS org, k.name AS cluster, n.name AS node, coalesce(n.host_serial, '') AS serial
  FROM mine JOIN node n ON n.org_id = $1 AND n.id = mine.node_id JOIN cluster k ON k.org_id = $1 AND k.id = n.cluster_id JOIN org o ON o.id = $1;

-- Right before the effect: what must be true is looked at once more, and the lease begins anew. No row: another server looks after it now.
-- `why` = it may not be done. $2 order $3 this server $4 seconds of a lease
-- name: machine_may
WITH mine AS (
  UPDATE command c SET lease_until = now() + make_interval(secs => $4::float8)
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.state = 'sent' AND c.ended_at IS NULL AND c.result = '' AND c.holder = $3::uuid
     AND c.lease_until > now() AND c.deadline_at > now()
  RETURNING c.repair_id, c.boot_id
)
SELECT CASE WHEN {{repair_stop}} IS NOT NULL THEN 'Repairs were stopped before anything was done.'
            WHEN NOT {{repair_idle}} THEN 'Something began to run on the node, or its scheduler cannot be read, before anything was done.'
            WHEN l.boot_id IS DISTINCT FROM mine.boot_id THEN 'The node booted by itself before anything was done.' END AS why
  FROM mine JOIN repair r ON r.org_id = $1 AND r.id = mine.repair_id JOIN node_latest l ON l.org_id = $1 AND l.node_id = r.node_id;

-- How it ended. $2 order $3 state, NULL = nobody can say: its time is over now $4 sentence $5 this server
-- name: machine_told
WITH upd AS (
  UPDATE command c SET state = coalesce($3::text, c.state), result = $4,
         ended_at = CASE WHEN $3::text IN ('refused', 'failed', 'withdrawn') THEN now() END,
         deadline_at = CASE WHEN $3::text IS NULL THEN now() ELSE c.deadline_at END
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'machine' AND c.state = 'sent' AND c.holder = $5::uuid
  RETURNING c.id, c.repair_id
), step AS (
  UPDATE repair_step s SET detail = s.detail || ' ' || $4 FROM upd WHERE s.org_id = $1 AND s.repair_id = upd.repair_id AND s.ended_at IS NULL
)
SELECT count(*) AS n FROM upd;
