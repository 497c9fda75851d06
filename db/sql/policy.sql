-- Policies, the breaker and stops: what decides whether a repair may start by itself.

-- The policy of node w, and what holds it, beside repair_facts. r is its open repair, inc its incidents.
-- fragment: guard_joins
LEFT JOIN LATERAL (
  SELECT p.id, p.version, p.settings FROM policy p
   WHERE p.org_id = $1 AND (p.node_id = w.id OR (p.node_id IS NULL AND (p.cluster_id = w.cluster_id OR p.cluster_id IS NULL)))
   ORDER BY p.node_id IS NULL, p.cluster_id IS NULL LIMIT 1) pol ON true
CROSS JOIN LATERAL (SELECT now() AT TIME ZONE coalesce(pol.settings ->> 'time_zone', 'UTC') AS local) clock
LEFT JOIN LATERAL (
  SELECT min(CASE g.reach WHEN 'org' THEN 1 WHEN 'cluster' THEN 2 ELSE 3 END) FILTER (WHERE g.stopped_at IS NOT NULL) AS stopped,
         min(CASE g.reach WHEN 'org' THEN 1 WHEN 'cluster' THEN 2 ELSE 3 END) FILTER (WHERE g.opened_at IS NOT NULL) AS opened,
         max(greatest(g.reset_at, g.lifted_at)) AS baseline_at
    FROM repair_guard g WHERE g.org_id = $1 AND g.target_id IN ($1, w.cluster_id, w.id)) guard ON true
CROSS JOIN (SELECT s.repairs_stopped_at, o.suspended_at, greatest(s.repairs_lifted_at, o.resumed_at, s.breaker_reset_at) AS baseline_at, s.breaker_opened_at
              FROM installation s, org o WHERE o.id = $1) whole

-- The oldest id that was made so many seconds ago, by the server's clock: ids begin with their time.
-- fragment: guard_facts
coalesce(pol.id || ' ' || pol.version, 'default') AS policy_tag, coalesce(pol.settings::text, '') AS policy_settings,
extract(isodow FROM clock.local)::integer - 1 AS weekday, (extract(hour FROM clock.local) * 60 + extract(minute FROM clock.local))::integer AS minute,
coalesce(z.seen, 0) AS seen, coalesce(z.silent, 0) AS cluster_silent, coalesce(begun.starts, 0) AS starts, coalesce(inc.code, '') AS code,
(SELECT count(DISTINCT i.node_id) FROM incident i
  WHERE i.org_id = $1 AND i.cluster_id = w.cluster_id AND i.check_id = inc.check_id AND i.code = inc.code AND i.node_fault AND i.mode = 'live'
    AND (i.closed_at IS NULL OR i.closed_at > now() - make_interval(secs => (coalesce(pol.settings ->> 'same_kind_seconds', '3600'))::float8))
    AND i.id > id_at(now() - make_interval(secs => (coalesce(pol.settings ->> 'same_kind_seconds', '3600'))::float8))) AS same_kind,
-- what came within ten minutes is one incident with several faces
(SELECT count(DISTINCT floor(extract(epoch FROM id_time(i.id)) / 600)) FROM incident i
  WHERE i.org_id = $1 AND i.node_id = w.id AND i.node_fault AND i.mode = 'live'
    AND i.id > id_at(now() - make_interval(days => (coalesce(pol.settings ->> 'lemon_days', '30'))::integer))) AS incidents_counted,
extract(epoch FROM now() - id_time(inc.oldest_id))::bigint AS fault_seconds_ago,
(SELECT count(*) FROM repair o JOIN node m ON m.org_id = $1 AND m.id = o.node_id
  WHERE o.org_id = $1 AND o.ended_at IS NULL AND o.state = ANY ($4::text[]) AND m.cluster_id = w.cluster_id AND m.id <> w.id
    AND ((w.rack <> '' AND m.rack = w.rack) OR (w.leaf <> '' AND m.leaf = w.leaf))) AS domain_running,
(SELECT count(*) FROM node m JOIN node_latest l ON l.org_id = $1 AND l.node_id = m.id
  WHERE m.org_id = $1 AND m.cluster_id = w.cluster_id AND m.removed_at IS NULL AND l.seen_at < now() - make_interval(secs => 3 * m.interval_seconds)
    AND ((w.rack <> '' AND m.rack = w.rack) OR (w.leaf <> '' AND m.leaf = w.leaf))) AS domain_silent,
w.role <> '' AND NOT EXISTS (SELECT FROM node m WHERE m.org_id = $1 AND m.cluster_id = w.cluster_id AND m.id <> w.id AND m.removed_at IS NULL
                                AND m.role = w.role AND m.state = 'healthy'
                                AND NOT EXISTS (SELECT FROM repair o WHERE o.org_id = $1 AND o.node_id = m.id AND o.ended_at IS NULL
                                                   AND o.state = ANY ($4::text[]))) AS last_of_role,
CASE WHEN whole.repairs_stopped_at IS NOT NULL THEN 1 WHEN whole.suspended_at IS NOT NULL THEN 2 WHEN guard.stopped IS NULL THEN 0 ELSE guard.stopped + 1 END AS stopped_reach,
CASE WHEN whole.breaker_opened_at IS NOT NULL THEN 1 WHEN guard.opened IS NULL THEN 0 ELSE guard.opened + 1 END AS breaker_reach,
coalesce(r.created_at <= greatest(guard.baseline_at, whole.baseline_at), false) AS waited,
(SELECT string_agg(x ->> 'code', ',') FROM jsonb_array_elements(r.why_not) x) AS open_why_codes, r.would_at IS NOT NULL AS would_start,
(SELECT g.starts FROM repair_guard g WHERE g.org_id = $1 AND g.target_id = w.cluster_id) AS starts_seen

-- ---------------------------------------------------------------- the loop that decides by policy
-- What the breakers look at, a row a cluster; rows of repair_guard are made where they are missing. $2 checks whose causes are shared
-- $3 failed state $4 succeeded state
-- name: guard_look
-- role: loop
WITH made AS (
  INSERT INTO repair_guard (org_id, target_id, reach, cluster_id)
  SELECT $1, t.id, t.reach, t.cluster_id
    FROM (SELECT $1::uuid AS id, 'org' AS reach, NULL::uuid AS cluster_id
          UNION ALL SELECT c.id, 'cluster', c.id FROM cluster c WHERE c.org_id = $1) t
   WHERE NOT EXISTS (SELECT FROM repair_guard g WHERE g.org_id = $1 AND g.target_id = t.id)
  ON CONFLICT DO NOTHING
), place AS MATERIALIZED (
  SELECT c.id, coalesce((SELECT p.settings FROM policy p WHERE p.org_id = $1 AND p.node_id IS NULL AND (p.cluster_id = c.id OR p.cluster_id IS NULL)
                          ORDER BY p.cluster_id IS NULL LIMIT 1), '{}') AS settings,
         coalesce((SELECT p.settings FROM policy p WHERE p.org_id = $1 AND p.node_id IS NULL AND p.cluster_id IS NULL), '{}') AS org_settings,
         g.opened_at IS NOT NULL AS is_open, whole.opened_at IS NOT NULL AS org_open,
         coalesce(greatest(g.reset_at, whole.reset_at, s.breaker_reset_at), '-infinity') AS reset_at,
         s.breaker_opened_at IS NOT NULL AND s.breaker_opened_at IS DISTINCT FROM whole.platform_told_at AS untold
    FROM cluster c CROSS JOIN installation s LEFT JOIN repair_guard g ON g.org_id = $1 AND g.target_id = c.id
    LEFT JOIN repair_guard whole ON whole.org_id = $1 AND whole.target_id = $1
   WHERE c.org_id = $1
)
SELECT p.id AS cluster_id, p.settings::text AS settings, p.org_settings::text AS org_settings, p.is_open, p.org_open, p.untold,
       (SELECT count(*) FROM node n WHERE n.org_id = $1 AND n.cluster_id = p.id AND n.removed_at IS NULL) AS nodes,
       (SELECT count(DISTINCT t.node_id) FROM node_transition t
         WHERE t.org_id = $1 AND t.cluster_id = p.id AND t.state = 'unhealthy' AND t.at > now() - interval '1 day' AND t.at > p.reset_at
           AND t.at > now() - make_interval(secs => coalesce(p.settings ->> 'breaker_seconds', '300')::float8)
           AND EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.node_id = t.node_id AND {{incident_counts}} AND i.node_fault
                          AND i.check_id <> ALL ($2::text[]))) AS newly_unhealthy,
       coalesce(last.ended, 0) AS automatic_ended, coalesce(last.failed, 0) AS automatic_failed
  FROM place p LEFT JOIN LATERAL (
    SELECT count(*) AS ended, count(*) FILTER (WHERE x.state = $3::text) AS failed
      FROM (SELECT r.state FROM repair r
             WHERE r.org_id = $1 AND r.cluster_id = p.id AND r.automatic AND r.state IN ($3::text, $4::text) AND r.ended_at > p.reset_at
               AND r.ended_at > now() - interval '6 hours'
             ORDER BY r.ended_at DESC LIMIT 5) x) last ON true
 ORDER BY p.id;

-- What an org adds to the installation's breaker. $2 nodes $3 of them newly unhealthy
-- name: guard_count
-- role: loop
WITH upd AS (
  UPDATE repair_guard g SET nodes = $2::bigint, newly_unhealthy = $3::bigint, counted_at = now()
   WHERE g.org_id = $1 AND g.target_id = $1
     AND ((g.nodes, g.newly_unhealthy) IS DISTINCT FROM ($2::bigint, $3::bigint) OR (g.counted_at > now() - interval '20 seconds') IS NOT TRUE)
  RETURNING g.target_id
)
SELECT count(*) FROM upd;

-- What the installation's breaker looks at: what the orgs counted within a minute and since the last reset, and the last automatic repairs of
-- all. $1 failed state $2 succeeded state
-- name: guard_platform_look
-- role: loop
-- scope: global
SELECT s.breaker_opened_at IS NOT NULL AS is_open, g.orgs, g.nodes, g.newly_unhealthy, last.ended AS automatic_ended, last.failed AS automatic_failed
  FROM installation s CROSS JOIN LATERAL (
    SELECT count(*) AS orgs, coalesce(sum(g.nodes), 0) AS nodes, coalesce(sum(g.newly_unhealthy), 0) AS newly_unhealthy FROM repair_guard g
     WHERE g.reach = 'org' AND g.counted_at > greatest(now() - interval '60 seconds', s.breaker_reset_at)) g
  CROSS JOIN LATERAL (
    SELECT count(*) AS ended, count(*) FILTER (WHERE x.state = $1::text) AS failed
      FROM (SELECT r.state FROM repair r
             WHERE r.automatic AND r.state IN ($1::text, $2::text) AND r.ended_at > greatest(now() - interval '6 hours', s.breaker_reset_at)
             ORDER BY r.ended_at DESC LIMIT 5) x) last;

-- $1 sentence
-- name: breaker_platform_open
-- role: loop
-- scope: global
WITH s AS (
  UPDATE installation s SET breaker_opened_at = now(), breaker_open_reason = $1::text WHERE s.one AND s.breaker_opened_at IS NULL RETURNING s.one
)
SELECT count(*) FROM s;

-- Each org is told once that the installation's breaker opened.
-- name: breaker_platform_tell
-- role: loop
WITH g AS (
  UPDATE repair_guard g SET platform_told_at = s.breaker_opened_at FROM installation s
   WHERE g.org_id = $1 AND g.target_id = $1 AND s.breaker_opened_at IS NOT NULL AND g.platform_told_at IS DISTINCT FROM s.breaker_opened_at
  RETURNING s.breaker_opened_at AS opened_at, s.breaker_open_reason AS open_reason
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM g WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, summary, data)
  SELECT $1, h.event_seq, 'breaker.opened', 'critical', 'The breaker of the whole installation opened, so no repair starts by itself: ' || g.open_reason,
         jsonb_build_object('reach', 'platform', 'reason', g.open_reason)
    FROM head h, g
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', 'breaker.open', 'target', NULL, 'target_name', 'breaker of the whole installation',
                                'outcome', 'done', 'before', NULL, 'after', row_to_json(g))::text
    FROM head h, g
)
SELECT count(*) FROM g;

-- A rule opens a breaker, once. $2 org or cluster $3 sentence
-- name: breaker_open
-- role: loop
WITH g AS (
  UPDATE repair_guard g SET opened_at = now(), open_reason = $3::text, version = g.version + 1
   WHERE g.org_id = $1 AND g.target_id = $2::uuid AND g.opened_at IS NULL
  RETURNING g.target_id, g.cluster_id, g.reach, g.opened_at, g.open_reason
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM g WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, summary, data)
  SELECT $1, h.event_seq, 'breaker.opened', 'critical', g.cluster_id,
         'The breaker opened, so no repair starts by itself: ' || g.open_reason, jsonb_build_object('reach', g.reach, 'reason', g.open_reason)
    FROM head h, g
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', 'breaker.open', 'target', g.target_id, 'target_name', 'breaker of the ' || g.reach,
                                'outcome', 'done', 'before', NULL, 'after', row_to_json(g))::text
    FROM head h, g
)
SELECT count(*) FROM g;

-- Nodes whose proposal a policy may decide. $2 proposed state
-- name: repair_candidates
-- role: loop
SELECT r.node_id FROM repair r WHERE r.org_id = $1 AND r.ended_at IS NULL AND r.state = $2::text ORDER BY r.created_at, r.id LIMIT 500;

-- The policy approves, if nobody else did anything since it counted. $2 repair $3 version $4 states it is possible in $5 next state
-- $6 which policy $7 cluster $8 starts of the cluster when it counted
-- name: repair_approve_by_policy
-- role: loop
WITH cur AS MATERIALIZED (
  SELECT r.id, r.no, r.cluster_id, r.node_id, r.state, r.version, r.action, r.incident_id, r.plan, r.plan_hash
    FROM repair r WHERE r.org_id = $1 AND r.id = $2::uuid AND r.version = $3::bigint AND r.state = ANY ($4::text[]) AND {{repair_stop}} IS NULL
     FOR UPDATE OF r SKIP LOCKED
), g AS (
  UPDATE repair_guard g SET starts = g.starts + 1 FROM cur
   WHERE g.org_id = $1 AND g.target_id = $7::uuid AND g.starts = $8::bigint AND g.opened_at IS NULL
     AND NOT EXISTS (SELECT FROM repair_guard o WHERE o.org_id = $1 AND o.target_id = $1 AND o.opened_at IS NOT NULL)
     AND NOT EXISTS (SELECT FROM installation s WHERE s.breaker_opened_at IS NOT NULL)
  RETURNING g.target_id
), upd AS (
  UPDATE repair r SET state = $5::text, version = r.version + 1, state_since = now(), decided_by = 'policy ' || $6::text, decided_at = now(),
         automatic = true, why_not = '[]',
         deadline_at = now() + make_interval(secs => (r.plan -> 'policy' ->> 'begin_within_seconds')::float8)
    FROM cur, g WHERE r.org_id = $1 AND r.id = cur.id
  RETURNING r.id, r.version
), closed AS (
  UPDATE repair_step s SET ended_at = now() FROM upd u WHERE s.org_id = $1 AND s.repair_id = u.id AND s.ended_at IS NULL
), step AS (
  INSERT INTO repair_step (org_id, repair_id, n, state, detail)
  SELECT $1, u.id, (SELECT coalesce(max(s.n), 0) + 1 FROM repair_step s WHERE s.org_id = $1 AND s.repair_id = u.id), $5::text,
         'Approved by policy ' || $6::text || '.'
    FROM upd u
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.event_seq, 'repair.approved', cur.cluster_id, cur.node_id, cur.incident_id, cur.id,
         'Repair ' || cur.no || ' of ' || n.name || ' (' || replace(cur.action, '_', ' ') || ') was approved by policy ' || $6::text,
         jsonb_build_object('no', cur.no, 'action', cur.action, 'from', cur.state, 'to', $5::text, 'policy', $6::text)
    FROM head, cur JOIN node n ON n.org_id = $1 AND n.id = cur.node_id
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'policy ' || $6::text, 'action', 'repair.approve', 'target', cur.id, 'target_name', 'repair ' || cur.no,
                                'outcome', 'done', 'before', jsonb_build_object('state', cur.state, 'version', cur.version),
                                'after', jsonb_build_object('state', $5::text, 'version', upd.version, 'action', cur.action, 'plan_hash', cur.plan_hash))::text
    FROM head, upd JOIN cur ON cur.id = upd.id
)
SELECT count(*) FROM upd;

-- A policy on trial would have approved: told once, nothing else happens. $2 repair $3 version $4 which policy
-- name: repair_would_start
-- role: loop
WITH upd AS (
  UPDATE repair r SET would_at = now(), why_not = '[]', version = r.version + 1
   WHERE r.org_id = $1 AND r.id = $2::uuid AND r.version = $3::bigint AND r.would_at IS NULL AND r.ended_at IS NULL
  RETURNING r.id, r.no, r.cluster_id, r.node_id, r.incident_id, r.action
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, repair_id, summary, data)
  SELECT $1, head.event_seq, 'repair.would_start', u.cluster_id, u.node_id, u.incident_id, u.id,
         'Repair ' || u.no || ' of ' || n.name || ' (' || replace(u.action, '_', ' ') || ') would have been approved by policy ' || $4::text
         || ', which is on trial', jsonb_build_object('no', u.no, 'action', u.action, 'policy', $4::text)
    FROM head, upd u JOIN node n ON n.org_id = $1 AND n.id = u.node_id
)
SELECT count(*) FROM upd;

-- What keeps proposals from starting by themselves, where that changed. $2 array of {id, version, why_not}
-- name: repair_why_not_set
-- role: loop
WITH t AS MATERIALIZED (
  SELECT x.id, x.version, x.why_not FROM jsonb_to_recordset($2::jsonb) AS x(id uuid, version bigint, why_not jsonb)
), upd AS (
  UPDATE repair r SET why_not = t.why_not, version = r.version + 1 FROM t
   WHERE r.org_id = $1 AND r.id = t.id AND r.version = t.version AND r.ended_at IS NULL
  RETURNING r.id
)
SELECT count(*) FROM upd;

-- ---------------------------------------------------------------- policies as people write them
-- fragment: policy_fields
p.id, p.cluster_id, p.node_id, (SELECT c.name FROM cluster c WHERE c.org_id = p.org_id AND c.id = p.cluster_id) AS cluster_name,
(SELECT n.name FROM node n WHERE n.org_id = p.org_id AND n.id = p.node_id) AS node_name,
p.settings, p.updated_by, p.created_at, p.updated_at, p.version

-- $2 limit $3 cursor
-- name: policy_list
WITH page AS MATERIALIZED (
  SELECT {{policy_fields}} FROM policy p
   WHERE p.org_id = $1 AND ($3::text IS NULL OR p.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY p.id LIMIT $2::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(x.id ORDER BY x.id))[$2::int]::text END FROM page x) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- $2 policy
-- name: policy_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{policy_fields}} FROM policy p WHERE p.org_id = $1 AND p.id = $2::uuid) t ON true;

-- The policy that counts for a node or for a cluster. $2 node or cluster $3 the settings where nobody wrote any
-- fragment: policy_effective
SELECT CASE WHEN w.id IS NULL THEN 404 ELSE 200 END AS status,
       json_build_object('policy_id', t.id, 'reach', CASE WHEN t.id IS NULL THEN 'default' WHEN t.node_id IS NOT NULL THEN 'node'
                                                          WHEN t.cluster_id IS NOT NULL THEN 'cluster' ELSE 'org' END,
                         'version', coalesce(t.version, 0), 'settings', coalesce($3::jsonb || t.settings, $3::jsonb))::text AS body
  FROM (SELECT 1) one LEFT JOIN want w ON true LEFT JOIN LATERAL (
    SELECT p.id, p.cluster_id, p.node_id, p.version, p.settings FROM policy p
     WHERE p.org_id = $1 AND (p.node_id = w.node_id OR (p.node_id IS NULL AND (p.cluster_id = w.id OR p.cluster_id IS NULL)))
     ORDER BY p.node_id IS NULL, p.cluster_id IS NULL LIMIT 1) t ON true

-- name: policy_of_node
WITH want AS (SELECT n.cluster_id AS id, n.id AS node_id FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL)
{{policy_effective}};

-- name: policy_of_cluster
WITH want AS (SELECT c.id, NULL::uuid AS node_id FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid)
{{policy_effective}};

-- $2 key $3 fingerprint $4 actor $5 context $6 cluster $7 node $8 settings $9 id $10 checks that no catalog knows
-- name: policy_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), place AS MATERIALIZED (
  SELECT n.cluster_id, n.id AS node_id FROM node n
   WHERE $7::uuid IS NOT NULL AND n.org_id = $1 AND n.id = $7::uuid AND n.removed_at IS NULL AND ($6::uuid IS NULL OR $6 = n.cluster_id)
  UNION ALL SELECT c.id, NULL FROM cluster c WHERE $7::uuid IS NULL AND $6::uuid IS NOT NULL AND c.org_id = $1 AND c.id = $6::uuid
  UNION ALL SELECT NULL, NULL WHERE $7::uuid IS NULL AND $6::uuid IS NULL
), taken AS MATERIALIZED (
  SELECT p.id FROM policy p, place WHERE p.org_id = $1 AND p.cluster_id IS NOT DISTINCT FROM place.cluster_id AND p.node_id IS NOT DISTINCT FROM place.node_id
), zone AS MATERIALIZED (SELECT FROM pg_timezone_names z WHERE z.name = $8::jsonb ->> 'time_zone' LIMIT 1),
{{policy_strangers}}, act AS (
  INSERT INTO policy AS p (org_id, id, cluster_id, node_id, settings, updated_by)
  SELECT $1, $9::uuid, place.cluster_id, place.node_id, $8::jsonb, $4 FROM place
   WHERE NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM taken) AND NOT EXISTS (SELECT FROM stranger) AND EXISTS (SELECT FROM zone)
  RETURNING {{policy_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'policy.created', a.cluster_id, a.node_id, $4, {{policy_words}} || ' was written', jsonb_build_object('policy_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'policy.create', 'target', a.id, 'target_name', {{policy_words}},
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201
            WHEN EXISTS (SELECT FROM taken) THEN 409 ELSE 422 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL AND NOT EXISTS (SELECT FROM taken)
            THEN CASE WHEN NOT EXISTS (SELECT FROM place) THEN CASE WHEN $7::uuid IS NULL THEN '#/cluster_id' ELSE '#/node_id' END
                      WHEN NOT EXISTS (SELECT FROM zone) THEN '#/time_zone' ELSE '#/automatic' END END AS pointer,
       CASE WHEN s.status IS NOT NULL OR a.id IS NOT NULL THEN NULL
            WHEN EXISTS (SELECT FROM taken) THEN 'There is a policy for this already: ' || (SELECT t.id FROM taken t) || '. Change that one.'
            WHEN NOT EXISTS (SELECT FROM place) THEN 'It names nothing in this organization.'
            WHEN NOT EXISTS (SELECT FROM zone) THEN 'It must be a time zone such as Europe/Berlin or UTC.'
            ELSE 'No check is called ' || (SELECT x.name FROM stranger x LIMIT 1) || ', so this rule could never act. See /api/v1/checks.' END AS detail,
       s.status IS NOT NULL AS replayed, coalesce(a.version, (s.body::json ->> 'version')::bigint) AS version,
       '/api/v1/policies/' || coalesce(a.id::text, s.body::json ->> 'id') AS next, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Names in a policy's lists that are neither in the catalog ($10 are those that are not) nor ever came with a fault.
-- fragment: policy_strangers
stranger AS MATERIALIZED (
  SELECT x.name FROM unnest($10::text[]) AS x(name) WHERE NOT EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.check_id = x.name)
     AND NOT EXISTS (SELECT FROM custom_check c WHERE c.org_id = $1 AND 'custom:' || c.name = x.name)
)

-- fragment: policy_words
'The policy of ' || CASE WHEN a.node_id IS NOT NULL THEN 'node ' || a.node_name WHEN a.cluster_id IS NOT NULL THEN 'cluster ' || a.cluster_name
                         ELSE 'the organization' END

-- $2 policy $3 If-Match $4 actor $5 context $6 settings to lay over $7 only below a cluster $8 time zone or NULL
-- $9 checks that no catalog knows
-- name: policy_update
WITH cur AS MATERIALIZED (
  SELECT {{policy_fields}} FROM policy p WHERE p.org_id = $1 AND p.id = $2::uuid AND ($7::boolean IS FALSE OR p.cluster_id IS NOT NULL) FOR UPDATE
), zone AS MATERIALIZED (
  SELECT FROM (SELECT 1) one WHERE $8::text IS NULL OR EXISTS (SELECT FROM pg_timezone_names z WHERE z.name = $8::text)
), stranger AS MATERIALIZED (
  SELECT x.name FROM unnest($9::text[]) AS x(name) WHERE NOT EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.check_id = x.name)
     AND NOT EXISTS (SELECT FROM custom_check c WHERE c.org_id = $1 AND 'custom:' || c.name = x.name)
), act AS (
  UPDATE policy p SET settings = p.settings || $6::jsonb, updated_by = $4, updated_at = now(), version = p.version + 1
    FROM cur WHERE p.org_id = $1 AND p.id = cur.id AND cur.version = $3::bigint AND NOT EXISTS (SELECT FROM stranger) AND EXISTS (SELECT FROM zone)
  RETURNING {{policy_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'policy.updated', a.cluster_id, a.node_id, $4, {{policy_words}} || ' was changed', jsonb_build_object('policy_id', a.id, 'changes', $6::jsonb)
    FROM head h, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'policy.update', 'target', a.id, 'target_name', {{policy_words}},
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN a.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN a.id IS NULL AND c.version = $3::bigint THEN CASE WHEN EXISTS (SELECT FROM zone) THEN '#/automatic' ELSE '#/time_zone' END END AS pointer,
       CASE WHEN a.id IS NULL AND c.version = $3::bigint
            THEN CASE WHEN EXISTS (SELECT FROM zone)
                      THEN 'No check is called ' || (SELECT x.name FROM stranger x LIMIT 1) || ', so this rule could never act. See /api/v1/checks.'
                      ELSE 'It must be a time zone such as Europe/Berlin or UTC.' END END AS detail,
       coalesce(a.version, c.version) AS version, row_to_json(a)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN act a ON true;

-- What was more general counts again. $2 policy $3 If-Match $4 actor $5 context $6 only below a cluster
-- name: policy_delete
WITH cur AS MATERIALIZED (
  SELECT {{policy_fields}} FROM policy p WHERE p.org_id = $1 AND p.id = $2::uuid AND ($6::boolean IS FALSE OR p.cluster_id IS NOT NULL) FOR UPDATE
), act AS (
  DELETE FROM policy p USING cur WHERE p.org_id = $1 AND p.id = cur.id AND cur.version = $3::bigint RETURNING p.id
), a AS (SELECT cur.* FROM cur JOIN act ON act.id = cur.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM a WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'policy.deleted', a.cluster_id, a.node_id, $4, {{policy_words}} || ' was deleted', jsonb_build_object('policy_id', a.id)
    FROM head h, a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'policy.delete', 'target', a.id, 'target_name', {{policy_words}},
                                              'outcome', 'done', 'before', row_to_json(a), 'after', NULL))::text
    FROM head h, a
)
SELECT CASE WHEN a.id IS NOT NULL THEN 204 WHEN c.id IS NULL THEN 404 ELSE 412 END AS status, c.version
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN a ON true;

-- ---------------------------------------------------------------- stops and breakers
-- fragment: guard_fields
g.reach, g.target_id, g.cluster_id, coalesce((SELECT c.name FROM cluster c WHERE c.org_id = g.org_id AND c.id = g.target_id),
                                            (SELECT n.name FROM node n WHERE n.org_id = g.org_id AND n.id = g.target_id)) AS name,
g.stopped_at, g.stopped_by, g.stop_comment, g.lifted_at, g.opened_at, g.open_reason, g.reset_at, g.reset_by, g.reset_comment, g.version

-- fragment: guard_platform_fields
s.repairs_stopped_at AS stopped_at, s.repairs_stopped_by AS stopped_by, s.repairs_stop_comment AS stop_comment, s.breaker_opened_at AS opened_at,
s.breaker_open_reason AS open_reason, s.breaker_reset_at AS reset_at, s.breaker_reset_by AS reset_by, s.breaker_reset_comment AS reset_comment

-- What holds repairs here: stops and breakers of all reaches, and the numbers they are about. $2 cluster; of the org: all that are in force.
-- fragment: guard_body
json_build_object(
  'platform', (SELECT row_to_json(t) FROM (SELECT {{guard_platform_fields}} FROM installation s) t),
  'items', (SELECT coalesce(json_agg(t ORDER BY t.reach, t.name, t.target_id), '[]'::json) FROM here t),
  'stopped', (SELECT s.repairs_stopped_at IS NOT NULL FROM installation s) OR EXISTS (SELECT FROM org o WHERE o.id = $1 AND o.suspended_at IS NOT NULL)
             OR EXISTS (SELECT FROM here t WHERE t.reach <> 'node' AND t.stopped_at IS NOT NULL),
  'breaker_open', (SELECT s.breaker_opened_at IS NOT NULL FROM installation s) OR EXISTS (SELECT FROM here t WHERE t.opened_at IS NOT NULL),
  'waiting', (SELECT w.n FROM waiting w))::text

-- name: guard_of_org
WITH here AS MATERIALIZED (
  SELECT {{guard_fields}} FROM repair_guard g
   WHERE g.org_id = $1 AND (g.target_id = $1 OR g.stopped_at IS NOT NULL OR g.opened_at IS NOT NULL) ORDER BY g.reach = 'org' DESC LIMIT 1000
), waiting AS (
  SELECT count(*) AS n FROM repair r WHERE r.org_id = $1 AND r.state = 'proposed' AND r.ended_at IS NULL
)
SELECT 200 AS status, {{guard_body}} AS body FROM org_head h WHERE h.org_id = $1;

-- name: guard_of_cluster
WITH here AS MATERIALIZED (
  SELECT {{guard_fields}} FROM repair_guard g
   WHERE g.org_id = $1 AND (g.target_id IN ($1, $2::uuid) OR (g.cluster_id = $2 AND (g.stopped_at IS NOT NULL OR g.opened_at IS NOT NULL)))
   ORDER BY g.reach = 'org' DESC, g.reach = 'cluster' DESC LIMIT 1000
), waiting AS (
  SELECT count(*) AS n FROM repair r WHERE r.org_id = $1 AND r.cluster_id = $2::uuid AND r.state = 'proposed' AND r.ended_at IS NULL
)
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status, {{guard_body}} AS body;

-- A person stops all repairs that have not begun, or lifts that. $2 node, cluster or org $3 reach $4 key $5 fingerprint $6 actor $7 context
-- $8 comment $9 true to stop
-- name: guard_stop
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $4
), place AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.id AS node_id, 'node ' || n.name AS words FROM node n
   WHERE $3::text = 'node' AND n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL
  UNION ALL SELECT c.id, c.id, NULL, 'cluster ' || c.name FROM cluster c WHERE $3::text = 'cluster' AND c.org_id = $1 AND c.id = $2::uuid
  UNION ALL SELECT $1, NULL, NULL, 'the organization' WHERE $3::text = 'org' AND $2::uuid = $1
), act AS (
  INSERT INTO repair_guard AS g (org_id, target_id, reach, cluster_id, stopped_at, stopped_by, stop_comment)
  SELECT $1, p.id, $3::text, p.cluster_id, CASE WHEN $9::boolean THEN now() END, CASE WHEN $9::boolean THEN $6::text ELSE '' END,
         coalesce($8::text, '')
    FROM place p WHERE NOT EXISTS (SELECT FROM seen)
  ON CONFLICT (org_id, target_id) DO UPDATE SET
         stopped_at = CASE WHEN $9::boolean THEN coalesce(g.stopped_at, now()) END,
         stopped_by = CASE WHEN $9::boolean AND g.stopped_at IS NULL THEN $6::text ELSE g.stopped_by END,
         stop_comment = coalesce($8::text, g.stop_comment),
         lifted_at = CASE WHEN NOT $9::boolean AND g.stopped_at IS NOT NULL THEN now() ELSE g.lifted_at END, version = g.version + 1
  RETURNING {{guard_fields}}
), taken_back AS (
  -- waits for a report that takes one along at this moment, and no later one finds any
  UPDATE command c SET state = 'withdrawn', ended_at = now(), result = 'Repairs were stopped before the order was taken.'
    FROM act a, node n
   WHERE $9::boolean AND c.org_id = $1 AND c.state = 'ready' AND c.repair_id IS NOT NULL AND n.org_id = $1 AND n.id = c.node_id
     AND $2::uuid IN ($1, n.cluster_id, n.id)
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, command_seq = h.command_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, CASE WHEN $9::boolean THEN 'repairs.stopped' ELSE 'repairs.allowed' END, CASE WHEN $9::boolean THEN 'warning' ELSE 'info' END,
         p.cluster_id, p.node_id, $6::text,
         'Repairs of ' || p.words || CASE WHEN $9::boolean THEN ' were stopped by ' ELSE ' are allowed again by ' END || $6::text
         || coalesce(': ' || nullif($8::text, ''), ''), jsonb_build_object('reach', $3::text)
    FROM head h, place p
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $4, $5::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $4 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($7::jsonb || jsonb_build_object('actor', $6::text, 'action', CASE WHEN $9::boolean THEN 'repairs.stop' ELSE 'repairs.allow' END,
                 'target', p.id, 'target_name', p.words, 'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a, place p
)
SELECT CASE WHEN s.fingerprint <> $5 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.target_id IS NOT NULL THEN 200 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $5 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- The same for every organization here. $2 key $3 fingerprint $4 actor $5 context $6 comment $7 true to stop
-- name: guard_stop_platform
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), act AS (
  UPDATE installation s SET
         repairs_lifted_at = CASE WHEN NOT $7::boolean AND s.repairs_stopped_at IS NOT NULL THEN now() ELSE s.repairs_lifted_at END,
         repairs_stopped_at = CASE WHEN $7::boolean THEN coalesce(s.repairs_stopped_at, now()) END,
         repairs_stopped_by = CASE WHEN $7::boolean THEN $4::text ELSE s.repairs_stopped_by END,
         repairs_stop_comment = coalesce($6::text, s.repairs_stop_comment)
   WHERE s.one AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{guard_platform_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, command_seq = h.command_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, actor, summary, data)
  SELECT $1, h.event_seq, CASE WHEN $7::boolean THEN 'repairs.stopped' ELSE 'repairs.allowed' END, CASE WHEN $7::boolean THEN 'warning' ELSE 'info' END,
         $4::text, 'Repairs of the whole installation' || CASE WHEN $7::boolean THEN ' were stopped by ' ELSE ' are allowed again by ' END || $4::text
         || coalesce(': ' || nullif($6::text, ''), ''), jsonb_build_object('reach', 'platform')
    FROM head h
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', CASE WHEN $7::boolean THEN 'repairs.stop' ELSE 'repairs.allow' END,
                 'target', NULL, 'target_name', 'the whole installation', 'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 ELSE coalesce(s.status, 200) END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- A platform administrator closes the breaker of the installation. $2 key $3 fingerprint $4 actor $5 context $6 comment
-- name: breaker_reset_platform
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), cur AS MATERIALIZED (
  SELECT {{guard_platform_fields}} FROM installation s WHERE s.one FOR UPDATE
), act AS (
  UPDATE installation s SET breaker_opened_at = NULL, breaker_open_reason = '', breaker_reset_at = now(), breaker_reset_by = $4::text,
         breaker_reset_comment = $6::text
    FROM cur WHERE s.one AND s.breaker_opened_at IS NOT NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{guard_platform_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, actor, summary, data)
  SELECT $1, h.event_seq, 'breaker.reset', 'warning', $4::text, 'The breaker of the whole installation was reset by ' || $4::text || ': ' || $6::text,
         jsonb_build_object('reach', 'platform')
    FROM head h
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'breaker.reset', 'target', NULL,
                 'target_name', 'breaker of the whole installation', 'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.reset_at IS NOT NULL THEN 200 ELSE 409 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.reset_at IS NULL THEN 'This breaker is not open.' END AS detail,
       'closed' AS state, s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- A person closes the breaker and says why. What waited stays for people: nothing is replayed. $2 org or cluster $3 key $4 fingerprint $5 actor
-- $6 context $7 comment
-- name: breaker_reset
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT {{guard_fields}} FROM repair_guard g WHERE g.org_id = $1 AND g.target_id = $2::uuid AND g.reach <> 'node' FOR UPDATE
), act AS (
  UPDATE repair_guard g SET opened_at = NULL, open_reason = '', reset_at = now(), reset_by = $5::text, reset_comment = $7::text, version = g.version + 1
    FROM cur WHERE g.org_id = $1 AND g.target_id = cur.target_id AND g.opened_at IS NOT NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{guard_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'breaker.reset', 'warning', a.cluster_id, $5::text, 'The breaker was reset by ' || $5::text || ': ' || $7::text,
         jsonb_build_object('reach', a.reach)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'breaker.reset', 'target', a.target_id,
                 'target_name', 'breaker of the ' || a.reach, 'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.target_id IS NOT NULL THEN 200
            WHEN c.target_id IS NOT NULL OR $2::uuid = $1 OR EXISTS (SELECT FROM cluster x WHERE x.org_id = $1 AND x.id = $2::uuid) THEN 409
            ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.target_id IS NULL THEN 'This breaker is not open.' END AS detail,
       'closed' AS state, s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN act a ON true;

-- ---------------------------------------------------------------- a policy against what really happened
-- Faults of the last 30 days that asked for an action, with what admission wants to know of them. $2 cluster or NULL $3 node or NULL
-- $4 time zone. `good` false: there is no such zone, or no such place.
-- name: policy_replay
SELECT z.good, z.zone, f.cluster_id, f.nodes, f.node_id, f.node_name, f.rack, f.leaf, f.off, f.check_id, f.code, f.action, f.at, f.closed_at,
       f.zone_offset, f.busy
  FROM (SELECT EXISTS (SELECT FROM pg_timezone_names t WHERE t.name = $4::text) AS zone,
               ($2::uuid IS NULL OR EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid))
               AND ($3::uuid IS NULL OR EXISTS (SELECT FROM node n WHERE n.org_id = $1 AND n.id = $3::uuid)) AS good) z
  LEFT JOIN LATERAL (
    SELECT i.cluster_id, n.id AS node_id, n.name AS node_name, n.rack, n.leaf, NOT n.auto_repair AS off, i.check_id, i.code, {{incident_action}} AS action,
           extract(epoch FROM id_time(i.id))::bigint AS at, extract(epoch FROM i.closed_at)::bigint AS closed_at,
           extract(epoch FROM (id_time(i.id) AT TIME ZONE CASE WHEN z.zone THEN $4::text ELSE 'UTC' END) - (id_time(i.id) AT TIME ZONE 'UTC'))::bigint AS zone_offset,
           (SELECT count(*) FROM node m WHERE m.org_id = $1 AND m.cluster_id = i.cluster_id AND m.removed_at IS NULL) AS nodes,
           coalesce((SELECT h.gpu_util[n.slot % 1024 + 1] > 5 FROM cluster_history h
                      WHERE h.org_id = $1 AND h.cluster_id = i.cluster_id AND h.chunk = n.slot / 1024 AND h.at <= id_time(i.id)
                        AND h.at > id_time(i.id) - interval '15 minutes' ORDER BY h.at DESC LIMIT 1), false) AS busy
      FROM incident i JOIN node n ON n.org_id = $1 AND n.id = i.node_id
     WHERE i.org_id = $1 AND i.node_fault AND i.mode = 'live' AND {{incident_action}} <> 'none' AND i.id > id_at(now() - interval '30 days')
       AND ($2::uuid IS NULL OR i.cluster_id = $2::uuid) AND ($3::uuid IS NULL OR i.node_id = $3::uuid)
     ORDER BY i.cluster_id, i.id LIMIT 3000) f ON z.good AND z.zone
 ORDER BY f.cluster_id, f.at;
