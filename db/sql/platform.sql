-- Organizations as the platform's administrators see them: all, with what is in them, and whether they are suspended.

-- $2 limit $3 after this name
-- name: platform_org_list
WITH page AS MATERIALIZED (
  SELECT o.* FROM platform_orgs($3::text, NULL, $2::int + 1) o
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.name ORDER BY p.name))[$2::int] END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.name), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.name LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- $2 org
-- name: platform_org_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT h.org_id FROM org_head h WHERE h.org_id = $1) h LEFT JOIN platform_orgs(NULL, $2::uuid, 1) t ON true;

-- Run in the org that it is about, whose log has the row. Servers drop what they know of its credentials, and its agents' orders wait.
-- $2 key $3 fingerprint $4 actor $5 context $6 reason $7 true to suspend
-- name: org_suspend
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), cur AS MATERIALIZED (
  SELECT o.id, o.name, o.suspended_at, o.suspended_by, o.suspend_reason FROM org o WHERE o.id = $1 FOR NO KEY UPDATE
), act AS (
  UPDATE org o SET suspended_at = CASE WHEN $7::boolean THEN now() END, suspended_by = CASE WHEN $7::boolean THEN $4::text ELSE '' END,
         suspend_reason = CASE WHEN $7::boolean THEN $6::text ELSE '' END,
         resumed_at = CASE WHEN $7::boolean THEN o.resumed_at ELSE now() END, version = o.version + 1, updated_at = now()
    FROM cur WHERE o.id = cur.id AND (cur.suspended_at IS NULL) = $7::boolean AND NOT EXISTS (SELECT FROM seen)
  RETURNING o.id, o.name, o.suspended_at, o.version, o.updated_at
), shown AS MATERIALIZED (
  SELECT p.id, p.name, p.title, p.demo, p.created_at, a.updated_at, a.version, a.suspended_at, CASE WHEN $7::boolean THEN $4::text END AS suspended_by,
         CASE WHEN $7::boolean THEN $6::text END AS suspend_reason, p.members, p.clusters, p.nodes
    FROM act a CROSS JOIN LATERAL platform_orgs(NULL, a.id, 1) p
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, command_seq = h.command_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, actor, summary, data)
  SELECT $1, h.event_seq, CASE WHEN $7::boolean THEN 'org.suspended' ELSE 'org.resumed' END, CASE WHEN $7::boolean THEN 'warning' ELSE 'info' END,
         $4, 'Organization ' || a.name || CASE WHEN $7::boolean THEN ' was suspended: ' ELSE ' works again: ' END || $6::text,
         jsonb_build_object('reason', $6::text)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 200, row_to_json(s)::text FROM head h, shown s WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', CASE WHEN $7::boolean THEN 'org.suspend' ELSE 'org.resume' END,
                 'target', a.id, 'target_name', a.name, 'outcome', 'done', 'comment', $6::text, 'before', row_to_json(c), 'after', row_to_json(s)))::text
    FROM head h, act a, shown s, cur c
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200
            WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL AND c.id IS NOT NULL
            THEN CASE WHEN $7::boolean THEN 'This organization is suspended already.' ELSE 'This organization is not suspended.' END END AS detail,
       CASE WHEN s.status IS NULL AND a.id IS NULL AND c.id IS NOT NULL
            THEN CASE WHEN $7::boolean THEN 'suspended' ELSE 'active' END END AS state,
       s.status IS NOT NULL AS replayed, a.version, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN shown a ON true;
