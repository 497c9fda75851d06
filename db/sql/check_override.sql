-- How an org wants checks to be: see server/health/catalog.h for what each check has.

-- fragment: override_fields
o.id, o.check_id, o.cluster_id, o.gpu_type, o.mode, o.severity, o.action, o.threshold, o.looks, o.clear_looks, o.shadow_until, o.reason, o.created_by, o.created_at, o.updated_at, o.version

-- All of an org, for the catalog; `holds` = it is the one that holds at a place. $2 cluster $3 GPU type $4 node, which brings both. A row
-- without a check comes first and says whether the place exists.
-- name: check_override_all
WITH n AS MATERIALIZED (
  SELECT n.cluster_id, n.gpu_type FROM node n WHERE n.org_id = $1 AND n.id = $4::uuid AND n.removed_at IS NULL
), place AS MATERIALIZED (
  SELECT coalesce((SELECT n.cluster_id FROM n), $2::uuid) AS cluster_id, coalesce((SELECT n.gpu_type FROM n), $3, '') AS gpu_type
)
SELECT NULL AS check_id, NULL AS body, ($4::uuid IS NULL OR EXISTS (SELECT FROM n))
       AND ($2::uuid IS NULL OR EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid)) AS holds, NULL AS source,
       NULL AS mode, NULL AS severity, NULL AS action, NULL::integer AS threshold, NULL::integer AS looks, NULL::integer AS clear_looks,
       NULL::text AS shadow_until, NULL AS id
UNION ALL
(SELECT o.check_id, row_to_json(t)::text, o.id = (
          SELECT b.id FROM check_override b WHERE b.org_id = $1 AND b.check_id = o.check_id AND (b.cluster_id IS NULL OR b.cluster_id = p.cluster_id)
             AND (b.gpu_type = '' OR b.gpu_type = p.gpu_type) ORDER BY b.cluster_id IS NULL, b.gpu_type = '' LIMIT 1),
        CASE WHEN o.cluster_id IS NOT NULL AND o.gpu_type <> '' THEN 'cluster and GPU type' WHEN o.cluster_id IS NOT NULL THEN 'cluster'
             WHEN o.gpu_type <> '' THEN 'GPU type' ELSE 'organization' END,
        CASE WHEN o.shadow_until > now() THEN 'shadow' ELSE o.mode END, o.severity, o.action, o.threshold, o.looks, o.clear_looks,
        trim('"' FROM to_json(o.shadow_until)::text), o.id::text
   FROM place p CROSS JOIN check_override o CROSS JOIN LATERAL (SELECT {{override_fields}}) t WHERE o.org_id = $1 ORDER BY o.check_id, o.id LIMIT 2000);

-- $2 limit $3 cursor
-- name: check_override_list
WITH page AS MATERIALIZED (
  SELECT {{override_fields}} FROM check_override o
   WHERE o.org_id = $1 AND ($3::text IS NULL OR o.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY o.id LIMIT $2::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: check_override_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{override_fields}} FROM check_override o WHERE o.org_id = $1 AND o.id = $2::uuid) t ON true;

-- What a check does not have cannot be set. Of v: check, action, threshold, looks, and whether anything is set. Checks: all, those with
-- an action, those that count events, those that look from time to time.
-- fragment: override_wrong
CASE WHEN NOT v.check_id = ANY (v.checks) THEN '#/check_id'
     WHEN v.action IS NOT NULL AND NOT v.check_id = ANY (v.acting) THEN '#/action'
     WHEN v.threshold IS NOT NULL AND NOT v.check_id = ANY (v.counting) THEN '#/threshold'
     WHEN (v.looks IS NOT NULL OR v.clear_looks IS NOT NULL) AND NOT v.check_id = ANY (v.looking) THEN '#/looks'
     WHEN v.mode IS NULL AND v.severity IS NULL AND v.action IS NULL AND v.threshold IS NULL AND v.looks IS NULL AND v.clear_looks IS NULL
     THEN '#/mode' END

-- fragment: override_wrong_detail
CASE w.pointer WHEN '#/check_id' THEN 'It names no check that can be set; GET /api/v1/checks lists them.'
               WHEN '#/action' THEN 'This check asks for no action, so there is none to replace.'
               WHEN '#/threshold' THEN 'This check does not count events; it has no threshold.'
               WHEN '#/looks' THEN 'This check is not judged by looks in a row.'
               WHEN '#/reason' THEN 'Without a trial (shadow_seconds 0) say why it should hold at once.'
               WHEN '#/mode' THEN 'Set at least one of mode, severity, action, threshold, looks and clear_looks.'
               WHEN '#/cluster_id' THEN 'It names no cluster of this organization.' END

-- A day in shadow where not said otherwise: a changed rule first shows what it does.
-- fragment: trial_until
now() + make_interval(secs => coalesce(v.shadow_seconds, 86400))

-- $2 key $3 fingerprint $4 actor $5 context $6 check $7 cluster $8 GPU type $9 mode $10 severity $11 action $12 threshold $13 looks
-- $14 clear looks $15 reason $16 seconds in shadow $17 id $18 checks $19 those with an action $20 those that count $21 those that look
-- name: check_override_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), v AS (
  SELECT $6::text AS check_id, $9::text AS mode, $10::text AS severity, $11::text AS action, $12::integer AS threshold,
         $13::integer AS looks, $14::integer AS clear_looks, $16::integer AS shadow_seconds,
         $18::text[] AS checks, $19::text[] AS acting, $20::text[] AS counting, $21::text[] AS looking
), w AS MATERIALIZED (
  SELECT coalesce({{override_wrong}}, CASE WHEN v.shadow_seconds = 0 AND coalesce($15, '') = '' THEN '#/reason' END, CASE WHEN $7::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $7)
                                           THEN '#/cluster_id' END) AS pointer FROM v
), act AS (
  INSERT INTO check_override AS o (org_id, id, check_id, cluster_id, gpu_type, mode, severity, action, threshold, looks, clear_looks, shadow_until, reason,
                                    created_by)
  SELECT $1, $17::uuid, v.check_id, $7::uuid, coalesce($8, ''), v.mode, v.severity, v.action, v.threshold, v.looks, v.clear_looks,
         CASE WHEN v.mode IN ('shadow', 'off') OR v.shadow_seconds = 0 OR coalesce(v.severity, v.action, v.threshold::text, v.looks::text) IS NULL THEN NULL
              ELSE {{trial_until}} END, coalesce($15, ''), $4
    FROM v, w WHERE w.pointer IS NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{override_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'check.changed', a.cluster_id, $4, 'Check ' || a.check_id || ' is set differently', jsonb_build_object('override_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'check_override.create', 'target', a.id, 'target_name', a.check_id,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN w.pointer IS NOT NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL THEN w.pointer END AS pointer, CASE WHEN s.status IS NULL THEN {{override_wrong_detail}} END AS detail,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $3 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/check-overrides/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM w LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- What is absent stays; null takes a part away. $3 If-Match $4 actor $5 context $6 mode $7 severity $8 action $9 threshold $10 looks
-- $11 clear looks $12 reason $13 seconds in shadow $14 fields present $15 checks $16 those with an action $17 those that count
-- $18 those that look
-- name: check_override_update
WITH cur AS MATERIALIZED (
  SELECT {{override_fields}} FROM check_override o WHERE o.org_id = $1 AND o.id = $2::uuid FOR UPDATE
), v AS (
  SELECT c.check_id, CASE WHEN 'mode' = ANY (p.list) THEN $6 ELSE c.mode END AS mode,
         CASE WHEN 'severity' = ANY (p.list) THEN $7 ELSE c.severity END AS severity,
         CASE WHEN 'action' = ANY (p.list) THEN $8 ELSE c.action END AS action,
         CASE WHEN 'threshold' = ANY (p.list) THEN $9::integer ELSE c.threshold END AS threshold,
         CASE WHEN 'looks' = ANY (p.list) THEN $10::integer ELSE c.looks END AS looks,
         CASE WHEN 'clear_looks' = ANY (p.list) THEN $11::integer ELSE c.clear_looks END AS clear_looks, $13::integer AS shadow_seconds,
         $15::text[] AS checks, $16::text[] AS acting, $17::text[] AS counting, $18::text[] AS looking
    FROM cur c, (SELECT string_to_array($14, ',') AS list) p
), w AS MATERIALIZED (
  SELECT coalesce({{override_wrong}}, CASE WHEN v.shadow_seconds = 0 AND coalesce($12, '') = '' THEN '#/reason' END) AS pointer FROM v
), upd AS (
  UPDATE check_override o SET mode = v.mode, severity = v.severity, action = v.action, threshold = v.threshold, looks = v.looks, clear_looks = v.clear_looks,
         reason = coalesce($12, o.reason),
         shadow_until = CASE WHEN v.mode IN ('shadow', 'off') OR v.shadow_seconds = 0 OR coalesce(v.severity, v.action, v.threshold::text, v.looks::text) IS NULL THEN NULL
                             WHEN (v.severity, v.action, v.threshold, v.looks) IS DISTINCT FROM (cur.severity, cur.action, cur.threshold, cur.looks)
                               OR v.shadow_seconds IS NOT NULL THEN {{trial_until}} ELSE o.shadow_until END,
         version = o.version + 1, updated_at = now()
    FROM cur, v, w WHERE o.org_id = $1 AND o.id = cur.id AND cur.version = $3::bigint AND w.pointer IS NULL
  RETURNING {{override_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'check.changed', u.cluster_id, $4, 'Check ' || u.check_id || ' is set differently', jsonb_build_object('override_id', u.id)
    FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'check_override.update', 'target', u.id, 'target_name', u.check_id,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN w.pointer END AS pointer,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN {{override_wrong_detail}} END AS detail,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN w ON true LEFT JOIN upd u ON true;

-- $3 actor $4 context
-- name: check_override_delete
WITH cur AS MATERIALIZED (
  SELECT {{override_fields}} FROM check_override o WHERE o.org_id = $1 AND o.id = $2::uuid FOR UPDATE
), del AS (
  DELETE FROM check_override o USING cur WHERE o.org_id = $1 AND o.id = cur.id RETURNING o.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM del WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary)
  SELECT $1, h.event_seq, 'check.changed', c.cluster_id, $3, 'Check ' || c.check_id || ' is as delivered again' FROM head h, cur c
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'check_override.delete', 'target', c.id, 'target_name', c.check_id,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', NULL))::text
    FROM head h, cur c
)
SELECT CASE WHEN c.id IS NULL THEN 404 ELSE 204 END AS status FROM (SELECT 1) one LEFT JOIN cur c ON true;

-- What an override would have done to the incidents of the last 30 days; nothing is changed. $2 check $3 cluster $4 GPU type $5 mode
-- $6 severity $7 action $8 threshold $9 looks $10 clear looks, which only agents can count; $11 checks $12 those with an action $13 those
-- that count $14 those that look
-- name: check_override_try
WITH v AS (
  SELECT $2::text AS check_id, $5::text AS mode, $6::text AS severity, $7::text AS action, $8::integer AS threshold,
         $9::integer AS looks, $10::integer AS clear_looks,
         $11::text[] AS checks, $12::text[] AS acting, $13::text[] AS counting, $14::text[] AS looking
), w AS MATERIALIZED (
  SELECT coalesce({{override_wrong}}, CASE WHEN $3::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $3)
                                           THEN '#/cluster_id' END) AS pointer FROM v
), i AS MATERIALIZED (
  SELECT i.count, i.node_id, i.closed_at IS NOT NULL AS closed, i.mode = 'live' AS live, i.node_fault, i.action <> 'none' AS acts,
         (v.mode IS NULL OR v.mode = 'live') AND i.count >= coalesce(v.threshold, 1) AS live_then, coalesce(v.mode, 'live') <> 'off' AS told_then,
         i.node_fault AND coalesce(v.severity, 'critical') = 'critical' AS fault_then,
         CASE WHEN i.action = 'none' THEN false ELSE coalesce(v.action, i.action) <> 'none' END AS acts_then
    FROM v, w, incident i JOIN node n ON n.org_id = i.org_id AND n.id = i.node_id
   WHERE w.pointer IS NULL AND i.org_id = $1 AND i.check_id = v.check_id AND i.first_at > now() - interval '30 days'
     AND ($3::uuid IS NULL OR i.cluster_id = $3) AND ($4::text IS NULL OR $4 = '' OR n.gpu_type = $4)
), r AS (
  SELECT now() - interval '30 days' AS since, now() AS until, coalesce(sum(i.count), 0) AS events, count(*) AS incidents,
         (SELECT row_to_json(t) FROM (SELECT count(*) FILTER (WHERE i.live) AS opened, count(*) FILTER (WHERE i.live AND i.closed) AS closed,
            count(*) FILTER (WHERE NOT i.live) AS shadowed, count(DISTINCT i.node_id) FILTER (WHERE i.live AND i.node_fault) AS nodes_down,
            count(*) FILTER (WHERE i.live AND i.node_fault AND i.acts) AS proposed FROM i) t) AS before,
         (SELECT row_to_json(t) FROM (SELECT count(*) FILTER (WHERE i.told_then AND i.live_then) AS opened,
            count(*) FILTER (WHERE i.told_then AND i.live_then AND i.closed) AS closed,
            count(*) FILTER (WHERE i.told_then AND NOT i.live_then) AS shadowed,
            count(DISTINCT i.node_id) FILTER (WHERE i.live_then AND i.fault_then) AS nodes_down,
            count(*) FILTER (WHERE i.live_then AND i.fault_then AND i.acts_then) AS proposed FROM i) t) AS after
    FROM i
)
SELECT CASE WHEN w.pointer IS NULL THEN 200 ELSE 422 END AS status, w.pointer, {{override_wrong_detail}} AS detail,
       CASE WHEN w.pointer IS NULL THEN row_to_json(r)::text END AS body
  FROM w, r;
