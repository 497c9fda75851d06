-- Links that download a part of the audit log once; the link itself is signed and lies with whoever was given it.

-- $2 actor $3 context $4 id $5 seconds that it holds $6 after $7 limit
-- name: export_link_create
WITH act AS (
  INSERT INTO export_link AS l (org_id, id, created_by, expires_at)
  SELECT $1, $4::uuid, $2, now() + make_interval(secs => $5::integer) RETURNING l.id, l.expires_at
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($3::jsonb || jsonb_build_object('actor', $2::text, 'action', 'audit.export_link', 'target', a.id, 'target_name', 'audit',
                                              'outcome', 'done', 'before', NULL,
                                              'after', jsonb_build_object('after', $6::bigint, 'limit', $7::integer, 'expires_at', a.expires_at)))::text
    FROM act a
)
SELECT a.id, a.expires_at FROM act a;

-- Uses it up. $2 id $3 address $4 request id. No row: used, over or unknown, or the org is suspended.
-- name: export_link_use
WITH act AS (
  UPDATE export_link l SET used_at = now() WHERE l.org_id = $1 AND l.id = $2::uuid AND l.used_at IS NULL AND l.expires_at > now()
     AND {{org_suspended}} IS NULL
  RETURNING l.id, l.created_by
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', 'link of ' || a.created_by, 'credential', a.id, 'address', $3::text, 'request_id', $4::text,
                               'action', 'audit.download', 'target', a.id, 'target_name', 'audit', 'outcome', 'done', 'before', NULL,
                               'after', NULL)::text FROM act a
)
SELECT a.id FROM act a;

-- name: export_link_prune
-- role: loop
DELETE FROM export_link l WHERE l.org_id = $1 AND l.expires_at < now() - interval '1 day';
