-- Statements of the tests in tests/api/test_db_connections.py; no program of ours has them.

-- name: probe_org
-- role: app, ingest, loop
-- scope: global
SELECT coalesce(current_setting('muster.org', true), '') AS org, (SELECT count(*) FROM org) AS orgs, now() AS at;

-- name: probe_projects
-- role: app, loop
SELECT p.name, coalesce(current_setting('muster.org', true), '') AS org, now() AS at FROM project p WHERE p.org_id = $1;

-- name: probe_divide
-- role: app, loop
-- scope: global
SELECT 10 / $1::integer AS value;

-- name: probe_sleep
-- role: app, loop
-- scope: global
SELECT pg_sleep($1::float8) IS NULL AS slept;

-- Counts its runs; each first run of two answers 409.
-- name: probe_conflict
-- scope: global
UPDATE probe SET runs = runs + 1 WHERE key = $1
RETURNING CASE WHEN runs % 2 = 1 THEN 409 ELSE 200 END AS status, runs AS version;

-- name: probe_write
-- scope: global
INSERT INTO probe (key) VALUES ($1) RETURNING 200 AS status, runs AS version;

-- The key is checked at the commit.
-- name: probe_write_deferred
-- scope: global
INSERT INTO probe_deferred (key) VALUES ($1) RETURNING 200 AS status;

-- name: probe_value
-- scope: global
SELECT p.runs FROM probe p WHERE p.key = $1;

-- name: probe_types
-- scope: global
SELECT $1::text AS a_text, $2::uuid AS a_uuid, $3::bigint AS a_number, $4::boolean AS a_bool, $5::bytea AS a_bytes,
       $6::timestamptz AS a_time, $7::float8 AS a_double;

-- The session's prepared statements are gone, as after a pooler's reset.
-- name: probe_forget
-- scope: global
DEALLOCATE ALL;
