-- Issuers: the identity providers of an org, their key sets, and who came by them.

-- What is shown of an issuer i with its key set k: what was given over the defaults; never the secret. $2 is this server's address.
-- fragment: issuer_json
jsonb_build_object('audiences', NULL, 'client_id', NULL, 'algorithms', NULL, 'username_claim', 'sub', 'username_prefix', NULL,
    'groups_claim', CASE WHEN i.config ? 'groups_path' THEN NULL ELSE 'groups' END, 'groups_path', NULL, 'groups_prefix', NULL,
    'required_claims', '{}'::jsonb, 'allowed_domains', '[]'::jsonb, 'entra_tenants', '[]'::jsonb, 'leeway_s', 60, 'max_lifetime_s', 86400,
    'quirks', '[]'::jsonb, 'discovery_url', NULL, 'ca_certificate', NULL, 'scopes', '["openid", "profile", "email"]'::jsonb)
  || i.config
  || jsonb_build_object('id', i.id, 'name', i.name, 'title', i.title, 'preset', i.preset, 'issuer', i.url,
    'client_secret_set', i.client_secret IS NOT NULL, 'sign_in', i.sign_in, 'bearer', i.bearer, 'enabled', i.enabled,
    'not_before', to_json(i.not_before), 'created_by', i.created_by, 'created_at', to_json(i.created_at), 'updated_at', to_json(i.updated_at),
    'version', i.version,
    'redirect_uri', $2::text || '/auth/callback', 'backchannel_logout_uri', $2::text || '/auth/backchannel-logout/' || i.id,
    'keys', jsonb_build_object('fetched_at', to_json(k.fetched_at), 'expires_at', to_json(k.expires_at),
      'stale', k.fetched_at IS NOT NULL AND k.expires_at < now() AND k.error <> '', 'count', k.count, 'unusable', k.unusable,
      'error', nullif(k.error, '')))

-- $2 server's address $3 limit $4 cursor
-- name: issuer_list
WITH page AS MATERIALIZED (
  SELECT i.id, {{issuer_json}} AS item FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id
   WHERE i.org_id = $1 AND ($4::text IS NULL OR i.id > CASE WHEN $4 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $4::uuid END)
   ORDER BY i.id LIMIT $3::int + 1
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.id ORDER BY p.id))[$3::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(t.item::text, ',' ORDER BY t.id), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.id, x.item FROM page x ORDER BY x.id LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- $2 server's address $3 issuer
-- name: issuer_get
SELECT CASE WHEN t.version IS NULL THEN 404 ELSE 200 END AS status, t.version, t.item::text AS body
  FROM (SELECT 1) one LEFT JOIN (
    SELECT i.version, {{issuer_json}} AS item FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id
     WHERE i.org_id = $1 AND i.id = $3::uuid) t ON true;

-- $2 server's address $3 key $4 fingerprint $5 actor $6 context $7 id $8 name $9 title $10 preset $11 url $12 config $13 sign_in $14 bearer
-- $15 enabled $16 not_before $17 sealed secret
-- name: issuer_create
WITH seen AS (
  SELECT s.status, s.body, s.fingerprint FROM idempotency s WHERE s.org_id = $1 AND s.key = $3
), act AS MATERIALIZED (
  INSERT INTO issuer AS i (org_id, id, name, title, preset, url, config, sign_in, bearer, enabled, not_before, client_secret, created_by)
  SELECT $1, $7::uuid, $8, coalesce($9, ''), coalesce($10, 'generic'), $11, $12::jsonb, coalesce($13::boolean, true),
         coalesce($14::boolean, false), coalesce($15::boolean, true), $16::timestamptz, $17::bytea, $5
   WHERE NOT EXISTS (SELECT FROM seen)
  RETURNING i.org_id, i.id, i.name, i.title, i.preset, i.url, i.config, i.client_secret, i.sign_in, i.bearer, i.enabled, i.not_before,
            i.created_by, i.created_at, i.updated_at, i.version
), fresh AS (
  INSERT INTO issuer_key_set AS k (org_id, issuer_id) SELECT $1, a.id FROM act a
  RETURNING k.fetched_at, k.expires_at, k.count, k.unusable, k.error
), made AS (
  SELECT i.id, i.name, i.version, {{issuer_json}} AS item FROM act i, fresh k
), epoch AS (
  UPDATE installation x SET auth_epoch = x.auth_epoch + 1 FROM made WHERE x.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'issuer.created', $5, 'Issuer ' || m.name || ' was set up', jsonb_build_object('issuer_id', m.id) FROM head h, made m
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, m.item::text FROM head h, made m WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'issuer.create', 'target', m.id, 'target_name', m.name,
                                              'outcome', 'done', 'before', NULL, 'after', m.item - 'keys'))::text
    FROM head h, made m
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 ELSE coalesce(s.status, 201) END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed,
       CASE WHEN s.fingerprint <> $4 THEN NULL ELSE coalesce(m.version, (s.body::json->>'version')::bigint) END AS version,
       '/api/v1/issuers/' || coalesce(m.id::text, s.body::json->>'id') AS next,
       coalesce(m.item::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN made m ON true;

-- What a change is laid over. $2 issuer
-- name: issuer_stored
SELECT (i.config || jsonb_strip_nulls(jsonb_build_object('name', i.name, 'title', i.title, 'preset', i.preset, 'issuer', i.url,
          'sign_in', i.sign_in, 'bearer', i.bearer, 'enabled', i.enabled, 'not_before', to_json(i.not_before))))::text AS stored, i.version
  FROM issuer i WHERE i.org_id = $1 AND i.id = $2::uuid;

-- Other keys or another URL mean other documents: those that were had are dropped. $2 server's address $3 issuer $4 If-Match $5 actor $6 context
-- $7 name $8 title $9 preset $10 url $11 config $12 sign_in $13 bearer $14 enabled $15 not_before $16 sealed secret $17 is the secret changed
-- name: issuer_update
WITH cur AS MATERIALIZED (
  SELECT i.id, i.name, i.version, i.url, i.config, {{issuer_json}} AS item
    FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id
   WHERE i.org_id = $1 AND i.id = $3::uuid FOR UPDATE OF i
), upd AS MATERIALIZED (
  UPDATE issuer i SET name = $7, title = coalesce($8, ''), preset = coalesce($9, 'generic'), url = $10, config = $11::jsonb,
         sign_in = coalesce($12::boolean, true), bearer = coalesce($13::boolean, false), enabled = coalesce($14::boolean, true),
         not_before = $15::timestamptz, client_secret = CASE WHEN $17::boolean THEN $16::bytea ELSE i.client_secret END,
         updated_at = now(), version = i.version + 1
    FROM cur WHERE i.org_id = $1 AND i.id = cur.id AND cur.version = $4::bigint
  RETURNING i.org_id, i.id, i.name, i.title, i.preset, i.url, i.config, i.client_secret, i.sign_in, i.bearer, i.enabled, i.not_before,
            i.created_by, i.created_at, i.updated_at, i.version
), moved AS (
  SELECT u.id FROM upd u, cur c
   WHERE (u.url, u.config->>'discovery_url', u.config->>'ca_certificate')
         IS DISTINCT FROM (c.url, c.config->>'discovery_url', c.config->>'ca_certificate')
), dropped AS (
  UPDATE issuer_key_set k SET discovery = '', discovery_at = NULL, keys = '', fetched_at = NULL, expires_at = NULL, tried_at = NULL, error = '',
         count = 0, unusable = '[]', version = k.version + 1
    FROM moved m WHERE k.org_id = $1 AND k.issuer_id = m.id
  RETURNING k.org_id, k.issuer_id, k.fetched_at, k.expires_at, k.count, k.unusable, k.error
), now_keys AS (
  SELECT d.fetched_at, d.expires_at, d.count, d.unusable, d.error FROM dropped d
  UNION ALL
  SELECT k.fetched_at, k.expires_at, k.count, k.unusable, k.error FROM issuer_key_set k, upd u
   WHERE k.org_id = $1 AND k.issuer_id = u.id AND NOT EXISTS (SELECT FROM dropped)
), made AS (
  SELECT i.id, i.name, i.version, {{issuer_json}} AS item FROM upd i, now_keys k
), epoch AS (
  UPDATE installation x SET auth_epoch = x.auth_epoch + 1 FROM made WHERE x.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'issuer.updated', $5, 'Issuer ' || m.name || ' was changed', jsonb_build_object('issuer_id', m.id) FROM head h, made m
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'issuer.update', 'target', m.id, 'target_name', m.name,
                                              'outcome', 'done', 'before', c.item - 'keys', 'after', m.item - 'keys', 'secret_changed', $17::boolean))::text
    FROM head h, made m, cur c
)
SELECT CASE WHEN m.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 412 ELSE 404 END AS status,
       coalesce(m.version, c.version) AS version, m.item::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN made m ON true;

-- Roles of its groups go with it; who came by it stays known, for the day it is set up again. $2 issuer $3 actor $4 context
-- name: issuer_delete
WITH cur AS MATERIALIZED (
  SELECT i.id, i.name, i.url FROM issuer i WHERE i.org_id = $1 AND i.id = $2::uuid FOR UPDATE
), act AS (
  DELETE FROM issuer i USING cur WHERE i.org_id = $1 AND i.id = cur.id RETURNING i.id
), epoch AS (
  UPDATE installation x SET auth_epoch = x.auth_epoch + 1 FROM act WHERE x.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'issuer.removed', $3, 'Issuer ' || c.name || ' was removed', jsonb_build_object('issuer_id', c.id) FROM head h, cur c
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'issuer.delete', 'target', c.id, 'target_name', c.name,
                                              'outcome', 'done', 'before', jsonb_build_object('issuer', c.url), 'after', NULL))::text
    FROM head h, cur c
)
SELECT CASE WHEN EXISTS (SELECT FROM act) THEN 204 ELSE 404 END AS status;
