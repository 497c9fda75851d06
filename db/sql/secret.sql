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
