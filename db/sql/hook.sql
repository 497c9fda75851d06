-- Orders to the operators' own automation: sent once by a thread of the pool; how they end comes by call-back.

-- Orders that nobody sent yet or that were answered "busy" a while ago, and those whose server was gone before it told how they ended.
-- $2 seconds of rest after "busy"
-- name: hook_orders
-- role: loop
SELECT c.id, c.state = 'sent' AS cut_off FROM command c
 WHERE c.org_id = $1 AND c.executor = 'webhook' AND c.ended_at IS NULL
   AND ((c.state = 'ready' AND c.deadline_at > now() AND (c.sent_at IS NULL OR c.sent_at < now() - make_interval(secs => $2::float8)))
        OR (c.state = 'sent' AND c.result = '' AND c.deadline_at < now()))
 ORDER BY c.created_at LIMIT 32;

-- One server takes it. $2 order $3 seconds in which its end must be told $4 it was cut off
-- name: hook_claim
WITH mine AS (
  UPDATE command c SET state = 'sent', sent_at = now(), result = CASE WHEN $4::boolean THEN 'Asking what became of it.' ELSE '' END,
         deadline_at = now() + make_interval(secs => $3::float8)
    FROM repair r
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'webhook' AND c.ended_at IS NULL AND r.org_id = $1 AND r.id = c.repair_id
     AND ($4::boolean OR ({{repair_stop}} IS NULL AND {{repair_idle}}))
     AND CASE WHEN $4::boolean THEN c.state = 'sent' AND c.result = '' AND c.deadline_at < now() ELSE c.state = 'ready' AND c.deadline_at > now() END
  RETURNING c.id, c.node_id, c.repair_id, c.action, c.boot_id
)
SELECT mine.id, mine.repair_id, mine.action, o.name AS org, k.name AS cluster, n.name AS node, n.id AS node_id, mine.boot_id, r.plan_hash, r.no AS repair_no,
       now() + make_interval(secs => coalesce((r.plan -> 'policy' ->> 'rejoin_within_seconds')::float8, 600)) AS back_by
  FROM mine JOIN repair r ON r.org_id = $1 AND r.id = mine.repair_id JOIN node n ON n.org_id = $1 AND n.id = mine.node_id
  JOIN cluster k ON k.org_id = $1 AND k.id = n.cluster_id JOIN org o ON o.id = $1;

-- What the automation said. $2 order $3 state, NULL = nobody can say, ready = busy $4 sentence $5 seconds in which it must be taken.
-- A call-back that was faster stays.
-- name: hook_told
WITH upd AS (
  UPDATE command c SET state = coalesce($3::text, c.state), result = CASE WHEN $3::text IN ('ready', 'accepted', 'done') THEN '' ELSE $4 END,
         ended_at = CASE WHEN $3::text IN ('refused', 'failed', 'done') THEN now() END,
         deadline_at = CASE WHEN $3::text IS NULL THEN now() WHEN $3::text = 'ready' THEN c.created_at + make_interval(secs => $5::float8)
                            ELSE c.deadline_at END
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'webhook' AND c.state = 'sent' AND c.ended_at IS NULL
  RETURNING c.id, c.repair_id
), step AS (
  UPDATE repair_step s SET detail = left(s.detail || ' ' || $4, 2000) FROM upd
   WHERE $3::text IS DISTINCT FROM 'ready' AND s.org_id = $1 AND s.repair_id = upd.repair_id AND s.ended_at IS NULL
)
SELECT count(*) AS n FROM upd;

-- Whose order it is: the automation's secret is found by it. $2 order
-- name: hook_order_get
SELECT o.name AS org, k.name AS cluster FROM command c JOIN node n ON n.org_id = $1 AND n.id = c.node_id
  JOIN cluster k ON k.org_id = $1 AND k.id = n.cluster_id JOIN org o ON o.id = $1
 WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'webhook';

-- The call-back: how it ended, once; progress before that goes to the step that is shown. $2 order $3 state: done, failed, progress $4 sentence
-- $5 address $6 request
-- name: hook_call_back
WITH cur AS MATERIALIZED (
  SELECT c.id, c.state, c.repair_id, c.ended_at, c.sent_at, c.node_id FROM command c
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.executor = 'webhook' FOR UPDATE
), ok AS MATERIALIZED (
  SELECT cur.id, cur.repair_id, cur.node_id, cur.state FROM cur WHERE cur.ended_at IS NULL AND cur.state IN ('sent', 'accepted')
), upd AS (
  UPDATE command c SET state = CASE WHEN $3::text = 'progress' THEN 'accepted' ELSE $3::text END,
         result = CASE WHEN $3::text = 'failed' THEN $4::text ELSE '' END, ended_at = CASE WHEN $3::text <> 'progress' THEN now() END
    FROM ok WHERE c.org_id = $1 AND c.id = ok.id
), step AS (
  UPDATE repair_step s SET detail = left($4::text, 2000) FROM ok
   WHERE $4::text <> '' AND s.org_id = $1 AND s.repair_id = ok.repair_id AND s.ended_at IS NULL
), head AS (
  UPDATE org_head h SET command_seq = h.command_seq + 1 FROM ok WHERE h.org_id = $1 RETURNING h.command_seq
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'automation', 'kind', 'none', 'credential', NULL, 'address', $5::text, 'request_id', $6::text,
                                'action', 'command.told', 'target', ok.id, 'target_name', (SELECT n.name FROM node n WHERE n.org_id = $1 AND n.id = ok.node_id),
                                'outcome', 'done', 'before', jsonb_build_object('state', ok.state),
                                'after', jsonb_build_object('state', $3::text, 'detail', $4::text))::text
    FROM head, ok
)
SELECT CASE WHEN ok.id IS NOT NULL THEN 204 WHEN cur.id IS NOT NULL THEN 409 ELSE 404 END AS status, cur.state,
       CASE WHEN cur.id IS NOT NULL AND ok.id IS NULL THEN 'The end of this order is known already, or it was never sent.' END AS detail
  FROM (SELECT 1) one LEFT JOIN cur ON true LEFT JOIN ok ON true;
