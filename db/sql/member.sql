-- Members: who has which role in the org, in one project or in one cluster: a person, or all in a group of an issuer.

-- fragment: member_rows
SELECT m.id, 'person' AS kind, m.person_id, p.name, m.role, NULL::uuid AS project_id, NULL::uuid AS cluster_id, NULL::uuid AS issuer_id,
       NULL AS "group", m.created_by, m.created_at
  FROM membership m JOIN person p ON p.id = m.person_id WHERE m.org_id = $1
UNION ALL
SELECT g.id, 'person', g.person_id, p.name, g.role, g.project_id, g.cluster_id, NULL, NULL, g.created_by, g.created_at
  FROM access_grant g JOIN person p ON p.id = g.person_id WHERE g.org_id = $1
UNION ALL
SELECT g.id, 'group', NULL, g.group_name, g.role, g.project_id, g.cluster_id, g.issuer_id, g.group_name, g.created_by, g.created_at
  FROM group_grant g WHERE g.org_id = $1

-- $2 limit $3 cursor
-- name: member_list
WITH page AS MATERIALIZED (
  SELECT x.* FROM ({{member_rows}}) x
   WHERE $3::text IS NULL OR x.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END
   ORDER BY x.id LIMIT $2::int + 1
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: member_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT x.* FROM ({{member_rows}}) x WHERE x.id = $2::uuid) t ON true;

-- A person is made where the name is new. $2 key $3 fingerprint $4 actor $5 context $6 name $7 role $8 project $9 cluster $10 person $11 issuer
-- $12 group $13 id $14 id of a new person
-- name: member_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), wrong AS (
  SELECT CASE WHEN num_nonnulls($6::text, $10::uuid, $12::text) <> 1 OR ($11::uuid IS NULL) <> ($12 IS NULL) THEN '#/name'
              WHEN $10 IS NOT NULL AND NOT EXISTS (SELECT FROM membership m WHERE m.org_id = $1 AND m.person_id = $10
                     UNION ALL SELECT FROM access_grant g WHERE g.org_id = $1 AND g.person_id = $10
                     UNION ALL SELECT FROM person_identity d WHERE d.org_id = $1 AND d.person_id = $10) THEN '#/person_id'
              WHEN $11 IS NOT NULL AND NOT EXISTS (SELECT FROM issuer i WHERE i.org_id = $1 AND i.id = $11) THEN '#/issuer_id'
              WHEN $8::uuid IS NOT NULL AND $9::uuid IS NOT NULL THEN '#/cluster_id'
              WHEN $8 IS NOT NULL AND NOT EXISTS (SELECT FROM project p WHERE p.org_id = $1 AND p.id = $8) THEN '#/project_id'
              WHEN $9 IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $9) THEN '#/cluster_id' END AS pointer
), good AS (
  SELECT 1 FROM wrong w WHERE w.pointer IS NULL AND NOT EXISTS (SELECT FROM seen)
), named AS (
  INSERT INTO person AS p (id, name) SELECT $14::uuid, $6 FROM good WHERE $6 IS NOT NULL
  ON CONFLICT (name) WHERE NOT federated DO UPDATE SET name = excluded.name RETURNING p.id, p.name
), who AS (
  SELECT n.id, n.name FROM named n UNION ALL SELECT p.id, p.name FROM person p, good WHERE p.id = $10
), whole AS (
  INSERT INTO membership AS m (org_id, person_id, role, id, created_by)
  SELECT $1, who.id, $7, $13::uuid, $4 FROM who WHERE $8 IS NULL AND $9 IS NULL
  RETURNING m.id, m.person_id, m.created_at
), part AS (
  INSERT INTO access_grant AS g (org_id, person_id, role, id, created_by, project_id, cluster_id)
  SELECT $1, who.id, $7, $13::uuid, $4, $8::uuid, $9::uuid FROM who WHERE $8 IS NOT NULL OR $9 IS NOT NULL
  RETURNING g.id, g.person_id, g.created_at
), team AS (
  INSERT INTO group_grant AS g (org_id, id, issuer_id, group_name, role, created_by, project_id, cluster_id)
  SELECT $1, $13::uuid, $11::uuid, $12, $7, $4, $8::uuid, $9::uuid FROM good WHERE $12 IS NOT NULL
  RETURNING g.id, g.created_at
), act AS MATERIALIZED (
  SELECT x.id, CASE WHEN $12 IS NULL THEN 'person' ELSE 'group' END AS kind, x.person_id, coalesce($12, who.name) AS name, $7::text AS role,
         $8::uuid AS project_id, $9::uuid AS cluster_id, $11::uuid AS issuer_id, $12::text AS "group", $4::text AS created_by, x.created_at
    FROM (SELECT w.id, w.person_id, w.created_at FROM whole w UNION ALL SELECT p.id, p.person_id, p.created_at FROM part p
          UNION ALL SELECT t.id, NULL, t.created_at FROM team t) x LEFT JOIN who ON true
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'member.added', $4, a.name || ' has the role ' || a.role, jsonb_build_object('member_id', a.id) FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'member.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN w.pointer IS NOT NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL THEN w.pointer END AS pointer,
       CASE WHEN s.status IS NULL AND w.pointer IS NOT NULL THEN CASE w.pointer
            WHEN '#/name' THEN 'Name a person (name or person_id), or a group with its issuer_id.'
            WHEN '#/person_id' THEN 'It is nobody of this organization.'
            WHEN '#/issuer_id' THEN 'It names no issuer of this organization.'
            ELSE 'Name one project or one cluster of this organization, or none.' END END AS detail,
       s.status IS NOT NULL AS replayed,
       '/api/v1/members/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM wrong w LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Takes a role away. Who has none left is signed out of this org. The administrators are locked before they are counted, so that
-- of the last two not both can go. $2 member $3 actor $4 context
-- name: member_delete
WITH admins AS MATERIALIZED (
  SELECT m.id FROM membership m WHERE m.org_id = $1 AND m.role = 'admin' ORDER BY m.person_id FOR UPDATE
), cur AS MATERIALIZED (
  SELECT x.* FROM ({{member_rows}}) x WHERE x.id = $2::uuid
), last AS (
  SELECT 1 FROM admins a WHERE a.id = $2::uuid AND (SELECT count(*) FROM admins) = 1
), whole AS (
  DELETE FROM membership m USING cur WHERE m.org_id = $1 AND m.id = cur.id AND NOT EXISTS (SELECT FROM last) RETURNING m.id
), part AS (
  DELETE FROM access_grant g USING cur WHERE g.org_id = $1 AND g.id = cur.id RETURNING g.id
), team AS (
  DELETE FROM group_grant g USING cur WHERE g.org_id = $1 AND g.id = cur.id RETURNING g.id
), act AS MATERIALIZED (
  SELECT w.id FROM whole w UNION ALL SELECT p.id FROM part p UNION ALL SELECT t.id FROM team t
), ended AS (
  DELETE FROM session s USING cur, act WHERE s.org_id = $1 AND s.person_id = cur.person_id
     AND NOT EXISTS (SELECT FROM membership m WHERE m.org_id = $1 AND m.person_id = cur.person_id AND m.id <> cur.id)
     AND NOT EXISTS (SELECT FROM access_grant g WHERE g.org_id = $1 AND g.person_id = cur.person_id AND g.id <> cur.id)
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'member.removed', $3, c.name || ' no longer has the role ' || c.role, jsonb_build_object('member_id', c.id)
    FROM head h, act a, cur c
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'member.delete', 'target', c.id, 'target_name', c.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', NULL))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN EXISTS (SELECT FROM act) THEN 204 WHEN EXISTS (SELECT FROM last) THEN 409 ELSE 404 END AS status,
       CASE WHEN EXISTS (SELECT FROM last) THEN 'This is the last administrator of the organization. Add another one first.' END AS detail;

-- Who belongs to the org: by a role of their own, or because they came by an issuer; the latter may have none yet. $2 limit $3 cursor
-- name: person_list
WITH who AS MATERIALIZED (
  SELECT m.person_id FROM membership m WHERE m.org_id = $1
  UNION SELECT g.person_id FROM access_grant g WHERE g.org_id = $1
  UNION SELECT d.person_id FROM person_identity d WHERE d.org_id = $1
), page AS MATERIALIZED (
  SELECT p.id, p.name, p.disabled_at IS NOT NULL AS disabled, d.issuer_id, d.issuer, d.subject, d.email, d.seen_at,
         (SELECT count(*) FROM membership m WHERE m.org_id = $1 AND m.person_id = p.id)
         + (SELECT count(*) FROM access_grant g WHERE g.org_id = $1 AND g.person_id = p.id) AS roles
    FROM who JOIN person p ON p.id = who.person_id
    LEFT JOIN LATERAL (SELECT i.issuer_id, i.issuer, i.subject, i.email, i.seen_at FROM person_identity i
                        WHERE i.org_id = $1 AND i.person_id = p.id ORDER BY i.seen_at DESC LIMIT 1) d ON true
   WHERE $3::text IS NULL OR p.id > CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END
   ORDER BY p.id LIMIT $2::int + 1
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- Signs a person out everywhere. $2 person $3 actor $4 context
-- name: sessions_end
SELECT sessions_end($2::uuid, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'session.delete_all', 'target', $2::uuid,
         'target_name', $3::text, 'outcome', 'done', 'before', NULL, 'after', NULL))::text) AS ended
  FROM org_head h WHERE h.org_id = $1;
