-- Checks of an org's own. Their incidents carry check_id 'custom:' || name; server/handlers/custom_checks.c reads the definition.

-- fragment: custom_check_fields
c.id, c.name, 'custom:' || c.name AS check_id, c.title, c.kind, c.cluster_id, c.gpu_type, c.severity, c.action, c.mode, c.shadow_until,
  c.definition, c.reason, c.created_by, c.updated_by, c.created_at, c.updated_at, c.version

-- $2 limit $3 cursor
-- name: custom_check_list
WITH page AS MATERIALIZED (
  SELECT {{custom_check_fields}} FROM custom_check c
   WHERE c.org_id = $1 AND ($3::text IS NULL OR c.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY c.id LIMIT $2::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: custom_check_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{custom_check_fields}} FROM custom_check c WHERE c.org_id = $1 AND c.id = $2::uuid) t ON true;

-- Every version, the newest first, at most 200, with what it changed.
-- name: custom_check_history
WITH cur AS MATERIALIZED (
  SELECT c.id, c.version FROM custom_check c WHERE c.org_id = $1 AND c.id = $2::uuid
), v AS MATERIALIZED (
  SELECT v.version, v.at, v.author, v.reason, v.body, lag(v.body) OVER (ORDER BY v.version) AS before
    FROM cur JOIN custom_check_version v ON v.org_id = $1 AND v.check_id = cur.id ORDER BY v.version DESC LIMIT 201
), t AS (
  SELECT v.version, v.at, v.author, v.reason, v.body,
         (SELECT coalesce(json_agg(json_build_object('field', x.field, 'before', x.before, 'after', x.after) ORDER BY x.field), '[]'::json)
            FROM (SELECT coalesce(a.key, b.key) AS field, b.value AS before, a.value AS after
                    FROM (SELECT e.key, e.value FROM jsonb_each((v.body - 'definition') || (v.body -> 'definition')) e) a
                    FULL JOIN (SELECT e.key, e.value FROM jsonb_each((v.before - 'definition') || (v.before -> 'definition')) e) b ON b.key = a.key
                   WHERE v.before IS NOT NULL AND a.value IS DISTINCT FROM b.value) x) AS changed
    FROM v ORDER BY v.version DESC LIMIT 200
)
SELECT CASE WHEN EXISTS (SELECT FROM cur) THEN 200 ELSE 404 END AS status, (SELECT cur.version FROM cur) AS version,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.version DESC), ']}') FROM t) AS body;

-- Of v: severity, action, seconds in shadow, reason; of the statement: a place and what the definition is for.
-- fragment: custom_check_wrong
CASE WHEN v.action <> 'none' AND v.severity <> 'critical' THEN '#/action'
     WHEN v.shadow_seconds = 0 AND coalesce(v.reason, '') = '' THEN '#/reason'
     WHEN (v.definition ? 'metric') <> (v.kind = 'metric') THEN '#/definition' END

-- fragment: custom_check_wrong_detail
CASE w.pointer WHEN '#/action' THEN 'Only a critical check may ask for an action.'
               WHEN '#/reason' THEN 'Without a trial (shadow_seconds 0) say why it should hold at once.'
               WHEN '#/definition' THEN 'A metric check has a metric, a command check has argv or script.'
               WHEN '#/cluster_id' THEN 'It names no cluster of this organization.'
               WHEN '#/name' THEN 'An organization has at most 50 checks of its own; delete one first.' END

-- The body of a version.
-- fragment: custom_check_version_body
jsonb_build_object('title', u.title, 'severity', u.severity, 'action', u.action, 'mode', u.mode, 'shadow_until', u.shadow_until,
                   'cluster_id', u.cluster_id, 'gpu_type', u.gpu_type, 'kind', u.kind, 'definition', u.definition)

-- What it opened ends with it. Of gone: name, why; $4 or its like is the actor.
-- fragment: custom_check_closing
due AS MATERIALIZED (
  SELECT i.id, i.no, i.cluster_id, i.node_id, i.check_id, i.code, i.device, i.summary, g.why
    FROM gone g JOIN incident i ON i.org_id = $1 AND i.check_id = 'custom:' || g.name AND i.closed_at IS NULL
   ORDER BY i.id LIMIT 5000 FOR NO KEY UPDATE OF i
), closed AS (
  UPDATE incident i SET closed_at = now(), closed_by = 'muster', close_reason = due.why, version = i.version + 1
    FROM due WHERE i.org_id = $1 AND i.id = due.id
  RETURNING i.id
)

-- $2 key $3 fingerprint $4 actor $5 context $6 name $7 title $8 kind $9 cluster $10 GPU type $11 severity $12 action $13 mode $14 definition
-- $15 seconds in shadow $16 reason $17 id
-- name: custom_check_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), v AS (
  SELECT $11::text AS severity, coalesce($12::text, 'none') AS action, $8::text AS kind, $14::jsonb AS definition, $15::integer AS shadow_seconds,
         $16::text AS reason, coalesce($13::text, 'live') AS mode
), w AS MATERIALIZED (
  SELECT coalesce({{custom_check_wrong}},
                  CASE WHEN $9::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $9) THEN '#/cluster_id'
                       WHEN (SELECT count(*) FROM custom_check c WHERE c.org_id = $1) >= 50 THEN '#/name' END) AS pointer FROM v
), act AS (
  INSERT INTO custom_check AS c (org_id, id, name, title, kind, cluster_id, gpu_type, severity, action, mode, shadow_until, definition, reason,
                                 created_by, updated_by)
  SELECT $1, $17::uuid, $6, coalesce($7, ''), v.kind, $9::uuid, coalesce($10, ''), v.severity, v.action, v.mode,
         CASE WHEN v.mode = 'live' AND coalesce(v.shadow_seconds, 1) > 0 THEN {{trial_until}} END, v.definition, coalesce(v.reason, ''), $4, $4
    FROM v, w WHERE w.pointer IS NULL AND NOT EXISTS (SELECT FROM seen)
  RETURNING {{custom_check_fields}}
), kept AS (
  INSERT INTO custom_check_version (org_id, check_id, version, author, reason, body)
  SELECT $1, u.id, u.version, $4, u.reason, {{custom_check_version_body}} FROM act u
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'check.changed', a.cluster_id, $4, 'Check ' || a.check_id || ' was made'
         || CASE WHEN a.shadow_until IS NOT NULL THEN '; it is in shadow first' ELSE '' END,
         jsonb_build_object('check_id', a.check_id, 'version', a.version, 'mode', a.mode, 'shadow_until', a.shadow_until) FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'custom_check.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN w.pointer IS NOT NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL THEN w.pointer END AS pointer, CASE WHEN s.status IS NULL THEN {{custom_check_wrong_detail}} END AS detail,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $3 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/custom-checks/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM w LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- What is absent stays. A changed rule goes on trial again; switched off, it ends what it opened. $3 If-Match $4 actor $5 context $6 title
-- $7 severity $8 action $9 mode $10 definition $11 seconds in shadow $12 reason
-- name: custom_check_update
WITH cur AS MATERIALIZED (
  SELECT {{custom_check_fields}} FROM custom_check c WHERE c.org_id = $1 AND c.id = $2::uuid FOR UPDATE
), v AS (
  SELECT coalesce($7, c.severity) AS severity, coalesce($8, c.action) AS action, coalesce($9, c.mode) AS mode, c.kind,
         coalesce($10::jsonb, c.definition) AS definition, $11::integer AS shadow_seconds, $12::text AS reason
    FROM cur c
), w AS MATERIALIZED (
  SELECT {{custom_check_wrong}} AS pointer FROM v
), upd AS (
  UPDATE custom_check c SET title = coalesce($6, c.title), severity = v.severity, action = v.action, mode = v.mode, definition = v.definition,
         shadow_until = CASE WHEN v.mode <> 'live' OR v.shadow_seconds = 0 THEN NULL
                             WHEN (v.severity, v.action, v.definition, v.mode) IS DISTINCT FROM (cur.severity, cur.action, cur.definition, cur.mode)
                               OR v.shadow_seconds IS NOT NULL THEN {{trial_until}} ELSE c.shadow_until END,
         reason = coalesce(v.reason, c.reason), updated_by = $4, version = c.version + 1, updated_at = now()
    FROM cur, v, w WHERE c.org_id = $1 AND c.id = cur.id AND cur.version = $3::bigint AND w.pointer IS NULL
  RETURNING {{custom_check_fields}}
), kept AS (
  INSERT INTO custom_check_version (org_id, check_id, version, author, reason, body)
  SELECT $1, u.id, u.version, $4, coalesce($12, ''), {{custom_check_version_body}} FROM upd u
), gone AS (
  SELECT u.name, 'The check was switched off.' AS why FROM upd u JOIN cur c ON c.mode <> 'off' WHERE u.mode = 'off'
), {{custom_check_closing}}, fact AS MATERIALIZED (
  SELECT 1 AS place, 'check.changed' AS type, u.cluster_id, NULL::uuid AS node_id, NULL::uuid AS incident_id, $4::text AS actor,
         'Check ' || u.check_id || ' was changed' || CASE WHEN u.shadow_until IS NOT NULL THEN '; it is in shadow first' ELSE '' END AS summary,
         jsonb_build_object('check_id', u.check_id, 'version', u.version, 'mode', u.mode, 'shadow_until', u.shadow_until) AS data FROM upd u
  UNION ALL
  SELECT 2, 'incident.closed', d.cluster_id, d.node_id, d.id, $4::text, 'Incident ' || d.no || ' closed: ' || d.summary,
         jsonb_build_object('no', d.no, 'check_id', d.check_id, 'code', d.code, 'device', d.device, 'reason', d.why) FROM due d JOIN closed ON closed.id = d.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + f.n FROM (SELECT count(*) AS n FROM fact) f WHERE h.org_id = $1 AND f.n > 0
  RETURNING h.event_seq - f.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, actor, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.place, f.incident_id), f.type, f.cluster_id, f.node_id, f.incident_id, f.actor, f.summary, f.data
    FROM head, fact f
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'custom_check.update', 'target', u.id, 'target_name', u.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN w.pointer END AS pointer,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN {{custom_check_wrong_detail}} END AS detail,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN w ON true LEFT JOIN upd u ON true;

-- $3 actor $4 context
-- name: custom_check_delete
WITH cur AS MATERIALIZED (
  SELECT {{custom_check_fields}} FROM custom_check c WHERE c.org_id = $1 AND c.id = $2::uuid FOR UPDATE
), gone AS (
  SELECT c.name, 'The check was deleted.' AS why FROM cur c
), {{custom_check_closing}}, del AS (
  DELETE FROM custom_check c USING cur WHERE c.org_id = $1 AND c.id = cur.id RETURNING c.id
), fact AS MATERIALIZED (
  SELECT 1 AS place, 'check.changed' AS type, c.cluster_id, NULL::uuid AS node_id, NULL::uuid AS incident_id, 'Check ' || c.check_id || ' was deleted' AS summary,
         jsonb_build_object('check_id', c.check_id, 'version', c.version) AS data FROM cur c JOIN del ON del.id = c.id
  UNION ALL
  SELECT 2, 'incident.closed', d.cluster_id, d.node_id, d.id, 'Incident ' || d.no || ' closed: ' || d.summary,
         jsonb_build_object('no', d.no, 'check_id', d.check_id, 'code', d.code, 'device', d.device, 'reason', d.why) FROM due d JOIN closed ON closed.id = d.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + f.n FROM (SELECT count(*) AS n FROM fact) f WHERE h.org_id = $1 AND f.n > 0
  RETURNING h.event_seq - f.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, incident_id, actor, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.place, f.incident_id), f.type, f.cluster_id, f.node_id, f.incident_id, $3, f.summary, f.data
    FROM head, fact f
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'custom_check.delete', 'target', c.id, 'target_name', c.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', NULL))::text
    FROM head h, cur c
)
SELECT CASE WHEN c.id IS NULL THEN 404 ELSE 204 END AS status FROM (SELECT 1) one LEFT JOIN cur c ON true;

-- On how many nodes a metric check would have failed in the last 30 days, by the samples that are kept: one of a node every few minutes, the
-- mean of its GPUs. Younger where so many samples would be too many. $2 cluster $3 GPU type $4 metric of the history $5 above $6 threshold
-- $7 seconds
-- name: custom_check_try
WITH c AS MATERIALIZED (
  SELECT c.id FROM cluster c WHERE c.org_id = $1 AND ($2::uuid IS NULL OR c.id = $2::uuid)
), span AS MATERIALIZED (
  -- 5 minutes a sample, 1,024 nodes a row: about three million values at most
  SELECT now() - make_interval(secs => least(2592000, 900000 / greatest(1, (SELECT count(*) FROM node n JOIN c ON c.id = n.cluster_id
                                                                            WHERE n.org_id = $1) / 1024 + 1))) AS since
), s AS MATERIALIZED (
  SELECT h.cluster_id, h.at, h.chunk * 1024 + u.i - 1 AS slot
    FROM span CROSS JOIN c JOIN cluster_history h ON h.org_id = $1 AND h.cluster_id = c.id AND h.at >= span.since
    CROSS JOIN LATERAL unnest(CASE $4 WHEN 'gpu_util' THEN h.gpu_util::integer[] WHEN 'gpu_mem_ratio' THEN h.gpu_mem_permille::integer[]
                                      WHEN 'cpu_ratio' THEN h.cpu_permille::integer[] ELSE h.net_mbps END) WITH ORDINALITY u(value, i)
   WHERE CASE WHEN $5::boolean THEN u.value > $6::float8 ELSE u.value < $6::float8 END
), r AS MATERIALIZED (
  SELECT x.cluster_id, x.slot, x.run, min(x.at) AS since, max(x.at) AS until
    FROM (SELECT s.cluster_id, s.slot, s.at, count(*) FILTER (WHERE s.fresh) OVER (PARTITION BY s.cluster_id, s.slot ORDER BY s.at) AS run
            FROM (SELECT s.cluster_id, s.slot, s.at,
                         s.at - lag(s.at) OVER (PARTITION BY s.cluster_id, s.slot ORDER BY s.at) > interval '11 minutes' AS fresh FROM s) s) x
   GROUP BY 1, 2, 3
), f AS MATERIALIZED (
  SELECT n.id, n.name, count(*) AS incidents, min(r.since) AS first_at, max(r.until) AS last_at
    FROM r JOIN node n ON n.org_id = $1 AND n.cluster_id = r.cluster_id AND n.slot = r.slot AND n.removed_at IS NULL
   WHERE r.until - r.since >= make_interval(secs => greatest(0, $7::integer - 300)) AND ($3::text IS NULL OR $3 = '' OR n.gpu_type = $3)
     AND r.since >= n.created_at
   GROUP BY n.id, n.name
)
SELECT CASE WHEN $2::uuid IS NULL OR EXISTS (SELECT FROM c) THEN 200 ELSE 422 END AS status,
       CASE WHEN $2::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM c) THEN '#/cluster_id' END AS pointer,
       'It names no cluster of this organization.' AS detail,
       (SELECT row_to_json(t)::text FROM (
          SELECT (SELECT span.since FROM span) AS since, now() AS until, (SELECT count(*) FROM f) AS nodes,
                 (SELECT coalesce(sum(f.incidents), 0) FROM f) AS incidents, 'mean' AS of,
                 (SELECT coalesce(json_agg(json_build_object('node_id', f.id, 'node_name', f.name, 'incidents', f.incidents, 'first_at', f.first_at,
                                                             'last_at', f.last_at) ORDER BY f.incidents DESC, f.name), '[]'::json)
                    FROM (SELECT f.id, f.name, f.incidents, f.first_at, f.last_at FROM f ORDER BY f.incidents DESC, f.name LIMIT 20) f) AS worst) t) AS body;
