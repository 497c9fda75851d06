-- Organizations: the tenants. A request sees the one its credential works in; a person also the list of their own.

-- fragment: org_fields
o.id, o.name, o.title, o.demo, o.created_at, o.updated_at, o.version

-- A person's orgs ($2), or the one a service token belongs to ($2 NULL).
-- name: org_list
WITH mine AS MATERIALIZED (
  SELECT {{org_fields}} FROM person_orgs($2::uuid) o
  UNION ALL
  SELECT {{org_fields}} FROM org o WHERE o.id = $1 AND $2 IS NULL
), page AS MATERIALIZED (
  SELECT {{org_fields}} FROM mine o WHERE $4::text IS NULL OR o.name > $4 ORDER BY o.name LIMIT $3::int + 1
)
SELECT 200 AS status, h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.name ORDER BY p.name))[$3::int] END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.name), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.name LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: org_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT h.org_id FROM org_head h WHERE h.org_id = $1) h
  LEFT JOIN (SELECT {{org_fields}} FROM org o) t ON t.id = h.org_id AND t.id = $2::uuid;

-- $3 If-Match $4 actor $5 context $6 title
-- name: org_update
WITH cur AS MATERIALIZED (
  SELECT {{org_fields}} FROM org o WHERE o.id = $1 AND o.id = $2::uuid FOR UPDATE
), upd AS (
  UPDATE org o SET title = coalesce($6, o.title), version = o.version + 1, updated_at = now()
    FROM cur WHERE o.id = cur.id AND cur.version = $3::bigint
  RETURNING {{org_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary)
  SELECT $1, h.event_seq, 'org.updated', $4, 'Organization ' || u.name || ' was changed' FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'org.update', 'target', u.id, 'target_name', u.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM head h, upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 412 ELSE 404 END AS status,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;

-- Run with the new org set for row security. $1 its id $2 name $3 title $4 person who becomes its administrator, or NULL $5 actor $6 context
-- name: org_create
-- scope: global
WITH act AS (
  INSERT INTO org AS o (id, name, title) VALUES ($1::uuid, $2, coalesce($3, '')) RETURNING {{org_fields}}
), head AS (
  INSERT INTO org_head AS h (org_id, event_seq) SELECT a.id, 1 FROM act a RETURNING h.org_id, h.event_seq
), chain AS (
  INSERT INTO audit_head AS c (org_id) SELECT h.org_id FROM head h RETURNING c.org_id
), member AS (
  INSERT INTO membership AS m (org_id, person_id, role)
  SELECT h.org_id, $4::uuid, 'admin' FROM head h WHERE $4 IS NOT NULL RETURNING m.org_id
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary)
  SELECT h.org_id, h.event_seq, 'org.created', $5, 'Organization ' || a.name || ' was created' FROM head h, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT c.org_id, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'org.create', 'target', a.id, 'target_name', a.name,
                                                    'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM chain c, act a
)
SELECT 201 AS status, a.version, '/api/v1/orgs/' || a.id AS next, row_to_json(a)::text AS body
  FROM act a;

-- The answer kept for a key whose effect lies in another org (creating one).
-- name: idempotency_get
SELECT i.status, i.body, i.fingerprint = $3::bytea AS same, '/api/v1/orgs/' || (i.body::json->>'id') AS location,
       (i.body::json->>'version')::bigint AS version FROM idempotency i WHERE i.org_id = $1 AND i.key = $2;

-- name: idempotency_keep
INSERT INTO idempotency (org_id, key, fingerprint, status, body) SELECT $1, $2, $3::bytea, $4::integer, $5
ON CONFLICT (org_id, key) DO NOTHING;
