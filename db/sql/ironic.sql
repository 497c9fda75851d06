-- Orders to a provisioner (Ironic): found by a loop, worked on for one look at a time under a lease, step by step.

-- $2 clusters that have a provisioner: "org/cluster".
-- name: ironic_orders
-- role: loop
SELECT k.id FROM command k JOIN node n ON n.org_id = $1 AND n.id = k.node_id JOIN cluster c ON c.org_id = $1 AND c.id = n.cluster_id
  JOIN org o ON o.id = $1 LEFT JOIN machine_order m ON m.org_id = $1 AND m.command_id = k.id
 WHERE k.org_id = $1 AND k.executor = 'ironic' AND k.ended_at IS NULL AND o.name || '/' || c.name = ANY ($2::text[])
   AND ((k.state = 'ready' AND k.deadline_at > now())
        OR (k.state = 'sent' AND NOT m.ended AND m.look_at <= now() AND coalesce(m.lease_until < now(), true)))
 ORDER BY m.look_at NULLS FIRST, k.created_at LIMIT 32;

-- One server works on it until the lease ends. $2 order $3 seconds of the lease $4 seconds in which all must end
-- $5 milliseconds that a machine stays off
-- name: ironic_claim
WITH cur AS MATERIALIZED (
  SELECT k.id, k.node_id, k.repair_id, k.action, k.state FROM command k JOIN repair r ON r.org_id = $1 AND r.id = k.repair_id
   WHERE k.org_id = $1 AND k.id = $2::uuid AND k.executor = 'ironic' AND k.ended_at IS NULL
     AND (k.state = 'sent' OR (k.state = 'ready' AND k.deadline_at > now() AND {{repair_stop}} IS NULL AND {{repair_idle}})) FOR UPDATE OF k SKIP LOCKED
), taken AS (
  UPDATE command k SET state = 'sent', sent_at = coalesce(k.sent_at, now()), deadline_at = now() + make_interval(secs => $4::float8)
    FROM cur WHERE k.org_id = $1 AND k.id = cur.id AND cur.state = 'ready' RETURNING k.id
), made AS (
  INSERT INTO machine_order AS m (org_id, command_id, machine, lease_until, fence)
  SELECT $1, cur.id, coalesce((SELECT x.machine FROM node_machine x WHERE x.org_id = $1 AND x.node_id = cur.node_id), n.name),
         now() + make_interval(secs => $3::float8), 1
    FROM cur JOIN taken ON taken.id = cur.id JOIN node n ON n.org_id = $1 AND n.id = cur.node_id
  RETURNING m.machine, m.spare_id, m.step, m.step_since, m.step_until, m.sent, m.begun, m.tries, m.before, m.fence
), again AS (
  UPDATE machine_order m SET lease_until = now() + make_interval(secs => $3::float8), fence = m.fence + 1
    FROM cur WHERE m.org_id = $1 AND m.command_id = cur.id AND cur.state = 'sent' AND NOT m.ended AND m.look_at <= now()
     AND coalesce(m.lease_until < now(), true)
  RETURNING m.machine, m.spare_id, m.step, m.step_since, m.step_until, m.sent, m.begun, m.tries, m.before, m.fence
)
SELECT m.machine, s.machine AS spare, m.step, m.sent, m.begun, m.tries, m.before, m.fence, m.step_until IS NULL AS fresh,
       coalesce(m.step_until < now(), false) AS late, m.step_since + make_interval(secs => $5::float8 / 1000) <= now() AS rested,
       cur.action, n.name AS node, r.no, o.name AS org, c.name AS cluster
  FROM (SELECT machine, spare_id, step, step_since, step_until, sent, begun, tries, before, fence FROM made
        UNION ALL SELECT machine, spare_id, step, step_since, step_until, sent, begun, tries, before, fence FROM again) m JOIN cur ON true JOIN node n ON n.org_id = $1 AND n.id = cur.node_id
  JOIN cluster c ON c.org_id = $1 AND c.id = n.cluster_id JOIN org o ON o.id = $1 JOIN repair r ON r.org_id = $1 AND r.id = cur.repair_id
  LEFT JOIN spare s ON s.org_id = $1 AND s.id = m.spare_id;

-- The spare of a failover: the one it holds, else the oldest that is free. $2 order $3 fence
-- name: ironic_take_spare
WITH cur AS MATERIALIZED (
  SELECT k.id, k.repair_id, k.node_id, n.cluster_id FROM machine_order m JOIN command k ON k.org_id = $1 AND k.id = m.command_id
    JOIN node n ON n.org_id = $1 AND n.id = k.node_id
   WHERE m.org_id = $1 AND m.command_id = $2::uuid AND m.fence = $3::bigint AND NOT m.ended
), free AS MATERIALIZED (
  SELECT s.id FROM spare s JOIN cur ON s.cluster_id = cur.cluster_id WHERE s.org_id = $1 AND s.state = 'available'
   ORDER BY s.created_at, s.id LIMIT 1 FOR UPDATE OF s SKIP LOCKED
), took AS (
  UPDATE spare s SET state = 'claimed', repair_id = cur.repair_id, node_id = cur.node_id, reason = '', updated_at = now(), version = s.version + 1
    FROM free, cur WHERE s.org_id = $1 AND s.id = free.id RETURNING s.id, s.machine
), noted AS (
  UPDATE machine_order m SET spare_id = took.id FROM took WHERE m.org_id = $1 AND m.command_id = $2::uuid RETURNING m.command_id
)
SELECT took.machine FROM took, noted;

-- The spare is no good, a person looks at it; or it is free again. $2 order $3 why, NULL = it is free
-- name: ironic_give_spare_back
WITH m AS (
  UPDATE machine_order m SET spare_id = NULL FROM machine_order old
   WHERE m.org_id = $1 AND m.command_id = $2::uuid AND old.org_id = $1 AND old.command_id = m.command_id RETURNING old.spare_id
), broken AS (
  UPDATE spare s SET state = CASE WHEN $3::text IS NULL THEN 'available' ELSE 'broken' END, reason = coalesce(left($3::text, 500), ''),
         repair_id = CASE WHEN $3::text IS NOT NULL THEN s.repair_id END, node_id = CASE WHEN $3::text IS NOT NULL THEN s.node_id END, updated_at = now(), version = s.version + 1
    FROM m WHERE s.org_id = $1 AND s.id = m.spare_id AND s.state = 'claimed' RETURNING s.id
)
SELECT count(*) AS n FROM broken;

-- Stored before a call: from now on its effect may have gone out. No row: the lease is over, or what must be true for a first effect is not.
-- $2 order $3 fence $4 when the provision state last changed $5 nothing was done before it
-- name: ironic_intend
WITH upd AS (
  UPDATE machine_order m SET sent = true, tries = m.tries + 1, before = $4::text FROM command k, repair r
   WHERE m.org_id = $1 AND m.command_id = $2::uuid AND m.fence = $3::bigint AND m.lease_until > now() AND NOT m.ended
     AND k.org_id = $1 AND k.id = m.command_id AND r.org_id = $1 AND r.id = k.repair_id
     AND (NOT $5::boolean OR ({{repair_stop}} IS NULL AND {{repair_idle}}))
  RETURNING m.tries
)
SELECT count(*) AS n FROM upd;

-- What a look found. $2 order $3 fence $4 step $5 seconds that this step may take from now on, NULL = as before $6 sent $7 begun
-- $8 the last try did not count $9 milliseconds until the next look $10 words for the log, empty = none $11 the node's machine, NULL = as before
-- name: ironic_note
WITH upd AS (
  UPDATE machine_order m SET step = $4::integer, step_since = CASE WHEN m.step <> $4::integer THEN now() ELSE m.step_since END,
         step_until = CASE WHEN $5::float8 IS NULL THEN m.step_until ELSE now() + make_interval(secs => $5::float8) END,
         sent = $6::boolean, begun = $7::boolean,
         tries = CASE WHEN m.step <> $4::integer THEN 0 WHEN $8::boolean THEN greatest(m.tries - 1, 0) ELSE m.tries END,
         look_at = now() + make_interval(secs => $9::float8 / 1000), lease_until = NULL, machine = coalesce($11::text, m.machine)
   WHERE m.org_id = $1 AND m.command_id = $2::uuid AND m.fence = $3::bigint AND NOT m.ended
  RETURNING m.command_id
), owner AS (
  INSERT INTO node_machine (org_id, node_id, cluster_id, machine)
  SELECT $1, n.id, n.cluster_id, $11::text FROM upd JOIN command k ON k.org_id = $1 AND k.id = upd.command_id
    JOIN node n ON n.org_id = $1 AND n.id = k.node_id WHERE $11::text IS NOT NULL
  ON CONFLICT (org_id, node_id) DO NOTHING
), step AS (
  UPDATE repair_step s SET detail = left(s.detail || to_char(now() AT TIME ZONE 'UTC', ' [HH24:MI:SS] ') || $10, 4000)
    FROM upd JOIN command k ON k.org_id = $1 AND k.id = upd.command_id
   WHERE $10::text <> '' AND s.org_id = $1 AND s.repair_id = k.repair_id AND s.ended_at IS NULL
)
SELECT count(*) AS n FROM upd;

-- How it ended. $2 order $3 fence $4 state: accepted, done, refused, failed; NULL = nobody can say $5 sentence
-- A failover that was accepted has moved the node to its spare; the former machine stays in the pool's list, as broken.
-- name: ironic_end
WITH ended AS (
  UPDATE machine_order m SET ended = true, lease_until = NULL
   WHERE m.org_id = $1 AND m.command_id = $2::uuid AND m.fence = $3::bigint AND NOT m.ended RETURNING m.command_id, m.machine, m.spare_id
), upd AS (
  UPDATE command k SET state = coalesce($4::text, k.state), result = left($5::text, 500), ended_at = CASE WHEN $4::text IN ('refused', 'failed', 'done') THEN now() END,
         deadline_at = CASE WHEN $4::text IS NULL THEN now() ELSE k.deadline_at END
    FROM ended WHERE k.org_id = $1 AND k.id = ended.command_id AND k.state = 'sent'
  RETURNING k.id, k.repair_id, k.node_id, k.action
), step AS (
  UPDATE repair_step s SET detail = left(s.detail || to_char(now() AT TIME ZONE 'UTC', ' [HH24:MI:SS] ') || $5, 4500)
    FROM upd WHERE s.org_id = $1 AND s.repair_id = upd.repair_id AND s.ended_at IS NULL
), swapped AS MATERIALIZED (
  SELECT upd.node_id, upd.repair_id, n.cluster_id, n.host_serial, n.name, ended.machine, s.machine AS spare, r.no
    FROM upd JOIN ended ON ended.command_id = upd.id JOIN spare s ON s.org_id = $1 AND s.id = ended.spare_id
    JOIN node n ON n.org_id = $1 AND n.id = upd.node_id JOIN repair r ON r.org_id = $1 AND r.id = upd.repair_id
   WHERE upd.action = 'failover' AND $4::text = 'accepted'
), moved AS (
  INSERT INTO node_machine AS x (org_id, node_id, cluster_id, machine) SELECT $1, w.node_id, w.cluster_id, w.spare FROM swapped w
  ON CONFLICT (org_id, node_id) DO UPDATE SET machine = EXCLUDED.machine, since = now()
), aside AS (
  INSERT INTO spare AS s (org_id, id, cluster_id, machine, serial, state, reason, repair_id, node_id, created_by)
  SELECT $1, gen_random_uuid(), w.cluster_id, w.machine, w.host_serial, 'broken', 'Repair ' || w.no || ' set it aside: it was ' || w.name || '.',
         w.repair_id, w.node_id, 'muster' FROM swapped w
  ON CONFLICT (org_id, machine) DO UPDATE SET state = 'broken', reason = EXCLUDED.reason, repair_id = EXCLUDED.repair_id, node_id = EXCLUDED.node_id,
         updated_at = now(), version = s.version + 1
)
SELECT count(*) AS n FROM upd;
