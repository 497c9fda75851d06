-- Join tokens: how a node enrols into a cluster. Stored hashed, shown once, an hour at most by default.

-- fragment: join_token_fields
t.id, t.cluster_id, t.uses_left, t.host_name, t.cidr, t.rejoin, t.created_by, t.created_at, t.expires_at, t.revoked_at

-- The secret never comes here; server/handlers/join_tokens.c adds it to the first answer. $2 cluster $3 key $4 fingerprint $5 actor $6 context $7 uses $8 expires_in_seconds
-- $9 host_name $10 network $11 rejoin $12 expires_in_days $13 id $14 token's hash
-- name: join_token_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cl AS MATERIALIZED (
  SELECT c.id, c.name FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid FOR KEY SHARE
), act AS (
  INSERT INTO join_token AS t (org_id, id, cluster_id, token_hash, uses_left, host_name, cidr, rejoin, created_by, expires_at)
  SELECT $1, $13::uuid, cl.id, $14::bytea, coalesce($7::integer, 1), $9, network($10::inet), $11, $5,
         now() + CASE WHEN $12::integer IS NOT NULL THEN $12::integer * interval '1 day'
                      WHEN $8::integer IS NULL AND $11::text IS NOT NULL THEN interval '30 days' ELSE coalesce($8::integer, 3600) * interval '1 second' END
    FROM cl WHERE NOT EXISTS (SELECT FROM seen)
  RETURNING {{join_token_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'token.created', a.cluster_id, $5, CASE WHEN a.rejoin IS NOT NULL THEN 'A token that lets nodes come back was created'
              ELSE 'A join token for ' || a.uses_left || CASE a.uses_left WHEN 1 THEN ' node' ELSE ' nodes' END || ' was created' END, jsonb_build_object('token_id', a.id) FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'join_token.create', 'target', a.id, 'target_name', cl.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a, cl
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 201 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       '/api/v1/join-tokens/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Newest first. $2 cluster $3 limit $4 cursor
-- name: join_token_list
WITH page AS MATERIALIZED (
  SELECT {{join_token_fields}} FROM join_token t
   WHERE t.org_id = $1 AND t.cluster_id = $2::uuid
     AND ($4::text IS NULL OR t.id < CASE WHEN $4 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $4::uuid END)
   ORDER BY t.id DESC LIMIT $3::int + 1
)
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.id ORDER BY p.id DESC))[$3::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id DESC LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: join_token_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{join_token_fields}} FROM join_token t WHERE t.org_id = $1 AND t.id = $2::uuid) t ON true;

-- Ends a token; those already ended are absent. $2 token $3 actor $4 context
-- name: join_token_delete
WITH cur AS MATERIALIZED (
  SELECT {{join_token_fields}} FROM join_token t WHERE t.org_id = $1 AND t.id = $2::uuid AND t.revoked_at IS NULL FOR UPDATE
), act AS (
  UPDATE join_token t SET revoked_at = now() FROM cur WHERE t.org_id = $1 AND t.id = cur.id AND t.revoked_at IS NULL
  RETURNING {{join_token_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'token.revoked', a.cluster_id, $3, 'A join token was revoked', jsonb_build_object('token_id', a.id) FROM head h, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'join_token.revoke', 'target', a.id, 'target_name', a.id,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN EXISTS (SELECT FROM act) THEN 204 ELSE 404 END AS status;
