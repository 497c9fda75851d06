-- Signing in at an issuer: tries, logins, their refresh, and their end.

-- name: issuer_org
-- scope: global
SELECT issuer_org($1::uuid) AS org_id;

-- An issuer with what it published. fresh: nothing has to be fetched. Keys are used for a day after they were had. $2 issuer
-- name: idp_get
SELECT i.url, (i.config || jsonb_build_object('issuer', i.url))::text AS config, i.client_secret, i.enabled AND i.sign_in AS sign_in,
       k.discovery, CASE WHEN k.fetched_at > now() - interval '24 hours' THEN k.keys ELSE '' END AS keys,
       coalesce(k.expires_at > now(), false) AS fresh,
       k.error = '' AND k.tried_at > greatest(k.fetched_at, now() - interval '15 seconds') AS busy
  FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id WHERE i.org_id = $1 AND i.id = $2::uuid;

-- $1 org's name or NULL
-- name: sign_in_options
-- scope: global
SELECT o.issuer_id, o.title, o.preset FROM sign_in_options($1) o;

-- $2 id, $3 issuer, $4 state's hash, $5 browser's hash, $6 return to, $7 seconds
-- name: login_attempt_create
INSERT INTO login_attempt (org_id, id, issuer_id, state_hash, browser_hash, return_to, expires_at)
VALUES ($1, $2::uuid, $3::uuid, $4::bytea, $5::bytea, $6, now() + $7::int * interval '1 second');

-- name: login_attempt_take
-- scope: global
SELECT a.org_id, a.issuer_id, a.return_to FROM login_attempt_take($1::bytea, $2::bytea) a;

-- The person, by (issuer, subject) and nothing else, made at the first login; what the token says of groups; the login and its
-- session. No row when the person is disabled.
-- $2 issuer, $3 iss, $4 subject, $5 name, $6 email, $7 groups, $8 token's iat, $9 id that a new person gets (login_person_id), $10 login, $11 sid, $12 id token,
-- $13 refresh token, $14 refresh at, $15 session, $16 session's hash, $17 address, $18 user agent, $19 context
-- name: login_begin
WITH known AS MATERIALIZED (
  SELECT d.person_id, p.disabled_at FROM person_identity d JOIN person p ON p.id = d.person_id
   WHERE d.org_id = $1 AND d.issuer = $3 AND d.subject = $4
), made AS (
  INSERT INTO person (id, name, federated) SELECT $9::uuid, left($5, 255), true WHERE NOT EXISTS (SELECT FROM known)
  ON CONFLICT (id) DO NOTHING RETURNING id
), renamed AS (
  UPDATE person p SET name = left($5, 255) FROM known k
   WHERE p.id = k.person_id AND k.disabled_at IS NULL AND p.federated AND p.name <> left($5, 255)
), ident AS (
  INSERT INTO person_identity AS d (org_id, issuer, subject, issuer_id, person_id, email, groups, groups_at)
  SELECT $1, $3, $4, $2::uuid, coalesce((SELECT k.person_id FROM known k), $9::uuid), left($6, 320), $7::text[], $8::timestamptz
   WHERE NOT EXISTS (SELECT FROM known k WHERE k.disabled_at IS NOT NULL)
  ON CONFLICT (org_id, issuer, subject) DO UPDATE
    SET issuer_id = excluded.issuer_id, email = excluded.email, seen_at = now(),
        groups = CASE WHEN excluded.groups_at >= d.groups_at THEN excluded.groups ELSE d.groups END,
        groups_at = greatest(excluded.groups_at, d.groups_at)
  RETURNING d.person_id
), log AS (
  INSERT INTO login (org_id, id, issuer_id, person_id, issuer, subject, sid, id_token, refresh_token, refresh_at)
  SELECT $1, $10::uuid, $2::uuid, i.person_id, $3, $4, $11, $12::bytea, $13::bytea, $14::timestamptz FROM ident i
), act AS (
  INSERT INTO session AS s (org_id, id, token_hash, person_id, expires_at, login_org, login_id, address, user_agent)
  SELECT $1, $15::uuid, $16::bytea, i.person_id, now() + interval '24 hours', $1, $10::uuid, left($17, 64), left($18, 255) FROM ident i
  RETURNING s.id, s.person_id, s.expires_at
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'person.joined', left($5, 255), left($5, 255) || ' came by an issuer for the first time',
         jsonb_build_object('person_id', m.id, 'issuer_id', $2::uuid) FROM head h, made m
), new_person AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($19::jsonb || jsonb_build_object('actor', $5::text, 'action', 'person.create', 'target', m.id, 'target_name', $5::text,
                                               'outcome', 'done', 'before', NULL, 'after', jsonb_build_object('issuer', $3::text, 'subject', $4::text)))::text
    FROM head h, made m
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($19::jsonb || jsonb_build_object('actor', $5::text, 'action', 'session.create', 'target', a.id, 'target_name', $5::text,
                                               'outcome', 'done', 'before', NULL,
                                               'after', jsonb_build_object('issuer_id', $2::uuid, 'groups', $7::text[])))::text
    FROM act a
)
SELECT a.person_id, extract(epoch FROM a.expires_at - now())::bigint AS max_age FROM act a;

-- A sign-in that was refused. $2 issuer, $3 name or '', $4 context, $5 reason
-- name: login_refused
INSERT INTO audit (org_id, body)
SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'session.create', 'target', $2::uuid, 'target_name', i.name,
                                            'outcome', 'denied', 'reason', $5::text, 'before', NULL, 'after', NULL))::text
  FROM (SELECT 1) one LEFT JOIN issuer i ON i.org_id = $1 AND i.id = $2::uuid;

-- ------------------------------------------------------------------ refresh
-- Logins whose tokens end soon, each for one replica: who takes it has until refresh_at. A login without a session is left.
-- name: login_due
-- role: loop
WITH due AS MATERIALIZED (
  SELECT l.id FROM login l
   WHERE l.org_id = $1 AND l.refresh_at <= now()
     AND EXISTS (SELECT FROM session s WHERE s.login_org = l.org_id AND s.login_id = l.id AND s.expires_at > now()
                                         AND s.seen_at > now() - interval '8 hours')
   ORDER BY l.refresh_at LIMIT 20 FOR UPDATE OF l SKIP LOCKED
)
UPDATE login l SET refresh_at = now() + least(60 * 2 ^ least(l.tries, 4), 900) * interval '1 second', tries = l.tries + 1
  FROM due WHERE l.org_id = $1 AND l.id = due.id RETURNING l.id;

-- name: login_get
SELECT l.issuer_id, l.person_id, l.issuer, l.subject, l.id_token, l.refresh_token, p.name
  FROM login l JOIN person p ON p.id = l.person_id WHERE l.org_id = $1 AND l.id = $2::uuid;

-- New tokens of a login. Without an ID token the groups stay as they are; other groups count at once, in open streams too.
-- $2 login, $3 id token, $4 refresh token, $5 refresh at, $6 groups or NULL, $7 token's iat, $8 audit body when the groups change
-- name: login_refreshed
WITH act AS (
  UPDATE login l SET id_token = coalesce($3::bytea, l.id_token), refresh_token = coalesce($4::bytea, l.refresh_token),
                     refresh_at = $5::timestamptz, tries = 0, refreshed_at = now()
   WHERE l.org_id = $1 AND l.id = $2::uuid RETURNING l.issuer, l.subject
), cur AS MATERIALIZED (
  SELECT d.issuer, d.subject, d.groups FROM person_identity d JOIN act a ON a.issuer = d.issuer AND a.subject = d.subject
   WHERE d.org_id = $1 AND $6::text[] IS NOT NULL AND $7::timestamptz >= d.groups_at FOR UPDATE OF d
), ident AS (
  UPDATE person_identity d SET groups = $6::text[], groups_at = $7::timestamptz, seen_at = now()
    FROM cur WHERE d.org_id = $1 AND d.issuer = cur.issuer AND d.subject = cur.subject
  RETURNING d.groups IS DISTINCT FROM cur.groups AS changed, cur.groups AS before
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($8::jsonb || jsonb_build_object('before', jsonb_build_object('groups', i.before), 'after', jsonb_build_object('groups', $6::text[])))::text
    FROM ident i WHERE i.changed
), epoch AS (
  UPDATE installation x SET auth_epoch = x.auth_epoch + 1 FROM ident i WHERE x.one AND i.changed
)
SELECT (SELECT count(*) FROM act) AS found, coalesce((SELECT i.changed FROM ident i), false) AS changed;

-- ------------------------------------------------------------------ ends
-- $2 login or NULL, $3 issuer, $4 sid or NULL, $5 subject or NULL, $6 audit body
-- name: logins_end
SELECT logins_end($1, $2::uuid, $3::uuid, $4, $5, $6) AS ended FROM org_head h WHERE h.org_id = $1;

-- No row: this logout token was used before. $2 issuer, $3 jti's hash, $4 seconds to remember it
-- name: logout_token_use
INSERT INTO logout_token (org_id, issuer_id, jti_hash, expires_at)
VALUES ($1, $2::uuid, $3::bytea, now() + $4::int * interval '1 second') ON CONFLICT DO NOTHING RETURNING issuer_id;

-- The session that signs out: what its issuer is told. $2 session
-- name: session_login
SELECT s.login_org, s.login_id FROM session s WHERE s.org_id = $1 AND s.id = $2::uuid;

-- A person's sessions in all orgs. $2 person, $3 the present session
-- name: session_list
SELECT 200 AS status,
       json_build_object('items', coalesce((SELECT json_agg(row_to_json(t)) FROM (
         SELECT s.id, json_build_object('id', s.org_id, 'name', s.org_name) AS org, s.created_at, s.seen_at, s.expires_at, s.address, s.user_agent,
                CASE WHEN s.issuer_id IS NOT NULL THEN json_build_object('id', s.issuer_id, 'title', s.issuer_title) END AS issuer,
                s.id = $3::uuid AS current
           FROM person_sessions($2::uuid) s) t), '[]'))::text AS body
  FROM org_head h WHERE h.org_id = $1;

-- $2 person, $3 session, $4 actor, $5 context
-- name: session_end
SELECT CASE WHEN session_end($2::uuid, $3::uuid, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'session.delete', 'target', $3::uuid,
         'target_name', $4::text, 'outcome', 'done', 'before', NULL, 'after', NULL))::text) THEN 204 ELSE 404 END AS status
  FROM org_head h WHERE h.org_id = $1;

-- ------------------------------------------------------------------ housekeeping
-- name: login_attempt_prune
-- role: loop
DELETE FROM login_attempt a WHERE a.org_id = $1 AND a.expires_at < now();

-- name: logout_token_prune
-- role: loop
DELETE FROM logout_token t WHERE t.org_id = $1 AND t.expires_at < now();

-- Logins whose sessions have all ended.
-- name: login_prune
-- role: loop
DELETE FROM login l WHERE l.org_id = $1 AND l.created_at < now() - interval '5 minutes'
   AND NOT EXISTS (SELECT FROM session s WHERE s.login_org = l.org_id AND s.login_id = l.id);
