-- People's sessions: sign-in by a one-time link, switching the org, signing out. No token is ever stored, only its SHA-256.

-- Who a sign-in link is for and the org a session begins in: a real one before a demo, the oldest first.
-- name: session_link
-- scope: global
SELECT l.person_id, p.name AS person_name, o.id AS org_id
  FROM sign_in_link l
  JOIN person p ON p.id = l.person_id AND p.disabled_at IS NULL
  CROSS JOIN LATERAL person_orgs(p.id) o
 WHERE l.token_hash = $1::bytea AND l.used_at IS NULL AND l.expires_at > now()
 ORDER BY o.demo, o.created_at LIMIT 1;

-- The link is used up and the session begins in one statement. $2 link's hash, $3 session id, $4 session's hash, $5 context,
-- $6 address, $7 user agent
-- name: session_create
WITH used AS (
  UPDATE sign_in_link l SET used_at = now()
   WHERE l.token_hash = $2::bytea AND l.used_at IS NULL AND l.expires_at > now()
   RETURNING l.person_id
), who AS (
  SELECT p.id, p.name FROM used u JOIN person p ON p.id = u.person_id AND p.disabled_at IS NULL
   WHERE EXISTS (SELECT FROM person_rights($1, p.id, NULL, NULL))
), act AS (
  INSERT INTO session AS s (org_id, id, token_hash, person_id, expires_at, address, user_agent)
  SELECT $1, $3::uuid, $4::bytea, w.id, now() + interval '24 hours', left($6, 64), left($7, 255) FROM who w
  RETURNING s.id, s.expires_at
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', w.name, 'action', 'session.create', 'target', a.id, 'target_name', w.name,
                                              'outcome', 'done', 'before', NULL, 'after', jsonb_build_object('by', 'sign_in_link')))::text
    FROM act a, who w
)
SELECT CASE WHEN a.id IS NULL THEN 401 ELSE 200 END AS status,
       extract(epoch FROM a.expires_at - now())::bigint AS max_age,
       json_build_object('person', json_build_object('id', w.id, 'name', w.name),
                         'org', (SELECT row_to_json(t) FROM (SELECT o.id, o.name, o.title, o.demo FROM org o WHERE o.id = $1) t),
                         'expires_at', a.expires_at)::text AS body
  FROM (SELECT 1) one LEFT JOIN act a ON true LEFT JOIN who w ON true;

-- name: session_expiry
SELECT s.expires_at, s.login_org, s.login_id FROM session s WHERE s.org_id = $1 AND s.id = $2::uuid;

-- The same person in another org ($1): a new session that ends when the old one would have, with the same login. No row when not a
-- member. $2 session id, $3 session's hash, $4 person, $5 the old one's end, $6 context, $7 address, $8 user agent, $9 login's org, $10 login
-- name: session_switch
WITH who AS (
  SELECT p.id, p.name FROM person p
   WHERE p.id = $4::uuid AND p.disabled_at IS NULL
     AND EXISTS (SELECT FROM person_rights($1, p.id, NULL, NULL))
), act AS (
  INSERT INTO session AS s (org_id, id, token_hash, person_id, expires_at, address, user_agent, login_org, login_id)
  SELECT $1, $2::uuid, $3::bytea, w.id, $5::timestamptz, left($7, 64), left($8, 255), $9::uuid, $10::uuid FROM who w
  RETURNING s.id, s.expires_at
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', w.name, 'action', 'session.switch', 'target', a.id, 'target_name', w.name,
                                              'outcome', 'done', 'before', NULL, 'after', NULL))::text
    FROM act a, who w
)
SELECT CASE WHEN a.id IS NULL THEN 404 ELSE 200 END AS status,
       extract(epoch FROM a.expires_at - now())::bigint AS max_age,
       json_build_object('person', json_build_object('id', w.id, 'name', w.name),
                         'org', (SELECT row_to_json(t) FROM (SELECT o.id, o.name, o.title, o.demo FROM org o WHERE o.id = $1) t),
                         'expires_at', a.expires_at)::text AS body
  FROM (SELECT 1) one LEFT JOIN act a ON true LEFT JOIN who w ON true;

-- $2 session, $3 actor, $4 context, $5 why: session.delete or session.leave (to another org)
-- name: session_delete
WITH act AS (
  DELETE FROM session s WHERE s.org_id = $1 AND s.id = $2::uuid RETURNING s.id
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', $5::text, 'target', a.id, 'target_name', $3::text,
                                              'outcome', 'done', 'before', NULL, 'after', NULL))::text
    FROM act a
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
)
SELECT 204 AS status;

-- The caller's org, its grants in parts of it, and all orgs of a person ($2); a service token ($2 NULL, $4 its id) has only this one,
-- with its roles ($3).
-- name: me_get
SELECT row_to_json(t)::text AS org,
       CASE WHEN $2::uuid IS NULL
            THEN json_build_array(json_build_object('id', t.id, 'name', t.name, 'title', t.title, 'demo', t.demo, 'roles', $3::text[]))
            ELSE (SELECT coalesce(json_agg(row_to_json(m)), '[]') FROM (SELECT o.id, o.name, o.title, o.demo, o.roles FROM person_orgs($2) o) m)
            END::text AS orgs,
       (SELECT coalesce(json_agg(row_to_json(x) ORDER BY x.role, x.project_id, x.cluster_id), '[]')::text FROM (
          SELECT DISTINCT r.role, r.project_id, r.cluster_id FROM person_rights($1, $2::uuid, NULL, NULL) r
           WHERE r.project_id IS NOT NULL OR r.cluster_id IS NOT NULL
          UNION ALL SELECT s.role, NULL, s.cluster_id FROM service_token s
           WHERE s.org_id = $1 AND s.id = $4::uuid AND $2 IS NULL AND s.cluster_id IS NOT NULL) x) AS grants,
       (SELECT coalesce(json_agg(json_build_object('role', r.role, 'project_id', r.project_id, 'cluster_id', r.cluster_id, 'via', r.via,
                                                   'group', r.group_name)
                                 ORDER BY r.via DESC, r.role, r.project_id, r.cluster_id, r.group_name), '[]')::text
          FROM person_rights($1, $2::uuid, NULL, NULL) r) AS rights,
       (SELECT json_build_object('at', s.suspended_at, 'reason', s.suspend_reason)::text FROM org s WHERE s.id = $1 AND s.suspended_at IS NOT NULL) AS suspended
  FROM (SELECT o.id, o.name, o.title, o.demo FROM org o JOIN org_head h ON h.org_id = o.id WHERE h.org_id = $1) t;
