-- Service tokens: how programs sign in. Stored hashed, shown once, revoked within seconds on every replica.

-- fragment: service_token_fields
t.id, t.name, t.role, t.cluster_id, t.platform_admin, t.created_by, t.created_at, t.expires_at, t.rotated_at,
CASE WHEN t.previous_until > now() THEN t.previous_until END AS previous_until, t.last_used_at, t.revoked_at

-- The secret never comes here; server/handlers/tokens.c adds it to the first answer. $2 key $3 fingerprint $4 actor $5 context $6 name $7 role
-- $8 expires_in_seconds $9 cluster or NULL $10 id $11 token's hash
-- name: service_token_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), place AS (
  SELECT c.id FROM (SELECT 1) one LEFT JOIN cluster c ON c.org_id = $1 AND c.id = $9::uuid WHERE $9 IS NULL OR c.id IS NOT NULL
), act AS (
  INSERT INTO service_token AS t (org_id, id, name, role, cluster_id, token_hash, created_by, expires_at)
  SELECT $1, $10::uuid, $6, $7, place.id, $11::bytea, $4, now() + $8::integer * interval '1 second' FROM place WHERE NOT EXISTS (SELECT FROM seen)
  RETURNING {{service_token_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'token.created', $4, 'Token ' || a.name || ' was created with the role ' || a.role, jsonb_build_object('token_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'token.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN '#/cluster_id' END AS pointer,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN 'It names no cluster of this organization.' END AS detail,
       s.status IS NOT NULL AS replayed,
       '/api/v1/tokens/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Those in use, newest first. $2 limit $3 cursor
-- name: service_token_list
WITH page AS MATERIALIZED (
  SELECT {{service_token_fields}} FROM service_token t
   WHERE t.org_id = $1 AND t.revoked_at IS NULL
     AND ($3::text IS NULL OR t.id < CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY t.id DESC LIMIT $2::int + 1
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id DESC))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id DESC LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: service_token_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{service_token_fields}} FROM service_token t WHERE t.org_id = $1 AND t.id = $2::uuid) t ON true;

-- A new secret; the present one works for a while yet. $2 token $3 key $4 fingerprint $5 actor $6 context $7 overlap_seconds $8 hash
-- name: service_token_rotate
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT {{service_token_fields}} FROM service_token t
   WHERE t.org_id = $1 AND t.id = $2::uuid AND t.revoked_at IS NULL AND NOT EXISTS (SELECT FROM seen) FOR UPDATE
), act AS (
  UPDATE service_token t SET token_hash = $8::bytea, previous_hash = t.token_hash, rotated_at = now(),
         previous_until = now() + coalesce($7::integer, 0) * interval '1 second'
    FROM cur WHERE t.org_id = $1 AND t.id = cur.id AND t.revoked_at IS NULL
  RETURNING {{service_token_fields}}
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'token.rotated', $5, 'Token ' || a.name || ' has a new secret', jsonb_build_object('token_id', a.id) FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'token.rotate', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Ends a token; those already ended are absent. $2 token $3 actor $4 context
-- name: service_token_delete
WITH cur AS MATERIALIZED (
  SELECT {{service_token_fields}} FROM service_token t WHERE t.org_id = $1 AND t.id = $2::uuid AND t.revoked_at IS NULL FOR UPDATE
), act AS (
  UPDATE service_token t SET revoked_at = now(), previous_hash = NULL, previous_until = NULL
    FROM cur WHERE t.org_id = $1 AND t.id = cur.id AND t.revoked_at IS NULL
  RETURNING {{service_token_fields}}
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'token.revoked', $3, 'Token ' || a.name || ' was revoked', jsonb_build_object('token_id', a.id) FROM head h, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'token.revoke', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN EXISTS (SELECT FROM act) THEN 204 ELSE 404 END AS status;

-- $2 token
-- name: service_token_touch
UPDATE service_token SET last_used_at = now()
 WHERE org_id = $1 AND id = $2::uuid AND (last_used_at IS NULL OR last_used_at < now() - interval '5 minutes');
