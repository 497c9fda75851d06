-- Signing in at the command line (RFC 8628): a program asks, a person allows it in the console, the program takes a session once.

-- $1 SHA-256 of the device's code $2 user's code $3 what the program is $4 its address $5 seconds that it holds
-- name: device_code_create
-- scope: global
INSERT INTO device_code AS d (device_hash, user_code, client, address, expires_at)
VALUES ($1::bytea, $2, $3, $4, now() + make_interval(secs => $5::integer))
RETURNING d.interval_seconds;

-- The program asks. Too early makes every further question wait 5 s longer (RFC 8628 3.5); half a second is the network's. $1 hash
-- name: device_code_ask
-- scope: global
WITH cur AS MATERIALIZED (
  SELECT d.device_hash, d.state, d.person_org, d.interval_seconds, d.expires_at <= now() AS expired,
         coalesce(d.asked_at > now() - make_interval(secs => d.interval_seconds - 0.5), false) AS early
    FROM device_code d WHERE d.device_hash = $1::bytea FOR UPDATE
), upd AS (
  UPDATE device_code d SET asked_at = now(), interval_seconds = least(d.interval_seconds + CASE WHEN cur.early THEN 5 ELSE 0 END, 300)
    FROM cur WHERE d.device_hash = cur.device_hash RETURNING d.interval_seconds
)
SELECT CASE WHEN cur.expired OR cur.state = 'used' THEN 'expired' WHEN cur.state <> 'pending' THEN cur.state
            WHEN cur.early THEN 'early' ELSE 'pending' END AS word,
       cur.person_org, upd.interval_seconds
  FROM cur, upd;

-- An allowed program takes its session, once. It lives 12 h whether it is used or not: seen_at lies ahead, because eight hours after it a
-- session counts as left. $2 device's hash $3 session $4 hash of its token $5 context
-- name: device_code_redeem
WITH used AS (
  UPDATE device_code d SET state = 'used'
   WHERE d.device_hash = $2::bytea AND d.state = 'approved' AND d.person_org = $1 AND d.expires_at > now()
  RETURNING d.person_id, d.client, d.address
), who AS (
  SELECT p.id, p.name, u.client, u.address FROM used u JOIN person p ON p.id = u.person_id AND p.disabled_at IS NULL
    JOIN person_orgs(p.id) o ON o.id = $1
), act AS (
  INSERT INTO session AS s (org_id, id, token_hash, person_id, client, address, user_agent, expires_at, seen_at)
  SELECT $1, $3::uuid, $4::bytea, w.id, w.client, left(w.address, 64), left(w.client, 255), now() + interval '12 hours', now() + interval '4 hours' FROM who w
  RETURNING s.id, s.expires_at
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', w.name, 'action', 'session.create', 'target', a.id, 'target_name', w.name,
                                              'outcome', 'done', 'before', NULL, 'after', jsonb_build_object('client', w.client)))::text
    FROM act a, who w
)
SELECT a.expires_at, w.id AS person_id, w.name,
       (SELECT row_to_json(t)::text FROM (SELECT o.id, o.name, o.title, o.demo FROM org o WHERE o.id = $1) t) AS org
  FROM act a, who w;

-- fragment: device_code_fields
d.user_code, d.client, d.address, d.state, d.created_at, d.expires_at

-- What a person is asked about; what is decided or over is absent. $2 user's code
-- name: device_code_get
SELECT CASE WHEN t.user_code IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT h.org_id FROM org_head h WHERE h.org_id = $1) h
  LEFT JOIN (SELECT {{device_code_fields}} FROM device_code d WHERE d.user_code = $2 AND d.state = 'pending' AND d.expires_at > now()) t ON true;

-- $2 user's code $3 person $4 actor $5 context $6 approve or deny
-- name: device_code_decide
WITH act AS (
  UPDATE device_code d SET state = CASE $6 WHEN 'approve' THEN 'approved' ELSE 'denied' END, person_id = $3::uuid, person_org = $1
   WHERE d.user_code = $2 AND d.state = 'pending' AND d.expires_at > now()
  RETURNING {{device_code_fields}}
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'device.' || $6, 'target', a.user_code, 'target_name', a.client,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM act a
)
SELECT CASE WHEN a.user_code IS NULL THEN 404 ELSE 200 END AS status, row_to_json(a)::text AS body
  FROM (SELECT 1) one LEFT JOIN act a ON true;

-- name: device_code_prune
-- role: loop
-- scope: global
DELETE FROM device_code d WHERE d.expires_at < now() - interval '1 hour';
