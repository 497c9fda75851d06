-- Projects: groups of clusters.

-- fragment: project_fields
p.id, p.name, p.title, (SELECT count(*) FROM cluster c WHERE c.org_id = p.org_id AND c.project_id = p.id) AS clusters,
p.created_at, p.updated_at, p.version

-- $2 limit $3 cursor
-- name: project_list
WITH page AS MATERIALIZED (
  SELECT {{project_fields}} FROM project p
   WHERE p.org_id = $1 AND ($3::text IS NULL OR p.name > $3) ORDER BY p.name LIMIT $2::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.name ORDER BY p.name))[$2::int] END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.name), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.name LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- $2 key $3 fingerprint $4 actor $5 context $6 name $7 title $8 id
-- name: project_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), act AS (
  INSERT INTO project AS p (org_id, id, name, title)
  SELECT $1, $8::uuid, $6, coalesce($7, '') WHERE NOT EXISTS (SELECT FROM seen)
  RETURNING {{project_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'project.created', $4, 'Project ' || a.name || ' was created', jsonb_build_object('project_id', a.id) FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'project.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 ELSE coalesce(s.status, 201) END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $3 THEN NULL ELSE coalesce(a.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/projects/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- name: project_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{project_fields}} FROM project p WHERE p.org_id = $1 AND p.id = $2::uuid) t ON true;

-- $3 If-Match $4 actor $5 context $6 name $7 title
-- name: project_update
WITH cur AS MATERIALIZED (
  SELECT p.id, p.name, p.title, p.version FROM project p WHERE p.org_id = $1 AND p.id = $2::uuid FOR UPDATE
), upd AS (
  UPDATE project p SET name = coalesce($6, p.name), title = coalesce($7, p.title), version = p.version + 1, updated_at = now()
    FROM cur WHERE p.org_id = $1 AND p.id = cur.id AND cur.version = $3::bigint
  RETURNING {{project_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'project.updated', $4, 'Project ' || u.name || ' was changed', jsonb_build_object('project_id', u.id) FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'project.update', 'target', u.id, 'target_name', u.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 412 ELSE 404 END AS status,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;
