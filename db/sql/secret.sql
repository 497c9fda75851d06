-- Secrets at rest: each org's key, wrapped by the master key that is a file of the servers (server/secrets.h).

-- The newest key of an org.
-- name: org_key_get
-- role: app, loop
SELECT k.version, k.master, k.wrapped FROM org_key k WHERE k.org_id = $1 ORDER BY k.version DESC LIMIT 1;

-- $2 version
-- name: org_key_get_version
-- role: app, loop
SELECT k.version, k.master, k.wrapped FROM org_key k WHERE k.org_id = $1 AND k.version = $2::int;

-- The first key of an org. $2 the key, wrapped; $3 the master key's id: nothing is stored when another is present by now, and the
-- row is held, so that a rotation finds this key or comes before it.
-- name: org_key_make
-- role: app, loop
WITH present AS (SELECT s.key_id FROM secret_master s WHERE s.one AND s.key_id = $3::bytea FOR SHARE)
INSERT INTO org_key (org_id, version, master, wrapped) SELECT $1, 1, p.key_id, $2::bytea FROM present p
ON CONFLICT DO NOTHING RETURNING version;

-- name: secret_master_get
-- role: app, migrate
-- scope: global
SELECT s.key_id FROM secret_master s WHERE s.one;

-- The master key of a database that has none yet.
-- name: secret_master_claim
-- scope: global
INSERT INTO secret_master (key_id) VALUES ($1::bytea) ON CONFLICT DO NOTHING;

-- ------------------------------------------------------------------ musterd key rotate-master
-- name: secret_master_set
-- role: migrate
-- scope: global
INSERT INTO secret_master AS s (key_id) VALUES ($1::bytea)
ON CONFLICT (one) DO UPDATE SET key_id = excluded.key_id, changed_at = now() WHERE s.key_id <> excluded.key_id;

-- $1 the present master key
-- name: org_key_stale
-- role: migrate
-- scope: global
SELECT k.org_id, k.version, k.master, k.wrapped FROM org_key k WHERE k.master <> $1::bytea ORDER BY k.org_id, k.version LIMIT 200;

-- $2 version, $3 wrapped until now, $4 wrapped anew, $5 by which master key, $6 audit body
-- name: org_key_rewrap
-- role: migrate
WITH act AS (
  UPDATE org_key k SET wrapped = $4::bytea, master = $5::bytea, rewrapped_at = now()
   WHERE k.org_id = $1 AND k.version = $2::int AND k.wrapped = $3::bytea RETURNING k.version
), au AS (
  INSERT INTO audit (org_id, body) SELECT $1, $6 FROM act
)
SELECT count(*) AS changed FROM act;

-- ------------------------------------------------------------------ musterd key rotate-data
-- Orgs that have a key, or the one of this name ($1), each with its newest version.
-- name: org_key_orgs
-- role: migrate
-- scope: global
SELECT o.id AS org_id, o.name, max(k.version) AS version FROM org o JOIN org_key k ON k.org_id = o.id
 WHERE $1::text IS NULL OR o.name = $1 GROUP BY o.id, o.name ORDER BY o.name;

-- The next version of an org's key: from its commit on servers seal with it. $2 version $3 wrapped $4 by which master key $5 audit body.
-- 0: another rotation was faster, or the master key is another one by now.
-- name: org_key_next
WITH present AS (
  SELECT s.key_id FROM secret_master s WHERE s.one AND s.key_id = $4::bytea FOR SHARE
), act AS (
  INSERT INTO org_key (org_id, version, master, wrapped) SELECT $1, $2::int, p.key_id, $3::bytea FROM present p
  ON CONFLICT DO NOTHING RETURNING version
), au AS (
  INSERT INTO audit (org_id, body) SELECT $1, $5 FROM act
)
SELECT count(*) AS made FROM act;

-- What is sealed by a former version: every sealed column there is, those behind a place and an id. $2 newest version $3 place $4 id
-- name: secret_stale
SELECT x.place, x.id, x.sealed FROM (
  SELECT 'issuer.client_secret' AS place, i.id, i.client_secret AS sealed FROM issuer i WHERE i.org_id = $1
  UNION ALL SELECT 'login.id_token', l.id, l.id_token FROM login l WHERE l.org_id = $1
  UNION ALL SELECT 'login.refresh_token', l.id, l.refresh_token FROM login l WHERE l.org_id = $1) x
 WHERE length(x.sealed) >= 5 AND ('x' || encode(substring(x.sealed FROM 2 FOR 4), 'hex'))::bit(32)::bigint < $2::bigint
   AND (x.place, x.id) > ($3::text, $4::uuid)
 ORDER BY x.place, x.id LIMIT 100;

-- One of them, unless it was changed meanwhile. $2 place $3 id $4 sealed until now $5 sealed anew
-- name: secret_reseal
WITH a AS (
  UPDATE issuer i SET client_secret = $5::bytea WHERE i.org_id = $1 AND $2::text = 'issuer.client_secret' AND i.id = $3::uuid
     AND i.client_secret = $4::bytea RETURNING i.id
), b AS (
  UPDATE login l SET id_token = CASE WHEN $2 = 'login.id_token' THEN $5::bytea ELSE l.id_token END,
         refresh_token = CASE WHEN $2 = 'login.refresh_token' THEN $5::bytea ELSE l.refresh_token END
   WHERE l.org_id = $1 AND l.id = $3::uuid
     AND CASE $2 WHEN 'login.id_token' THEN l.id_token = $4::bytea WHEN 'login.refresh_token' THEN l.refresh_token = $4::bytea ELSE false END
  RETURNING l.id
)
SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b) AS changed;

-- The end of it, for the org's log. $2 audit body
-- name: org_key_turned
INSERT INTO audit (org_id, body) VALUES ($1, $2);
