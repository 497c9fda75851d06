-- Keys of issuers: what is due, who fetches, and what came of it; and who a token of an issuer is about.

-- fragment: issuer_source
(i.config || jsonb_build_object('issuer', i.url))::text AS source

-- All that are used, with the ages of what is stored; the texts are read when a version moved.
-- name: issuer_heads
-- role: loop
-- scope: global
SELECT i.org_id, i.id, i.version, k.version AS keys_version,
       (extract(epoch FROM now() - k.fetched_at) * 1000000)::bigint AS fetched_ago,
       (extract(epoch FROM now() - k.tried_at) * 1000000)::bigint AS tried_ago,
       (extract(epoch FROM k.expires_at - now()) * 1000000)::bigint AS expires_in,
       k.error = '' AND k.tried_at > coalesce(k.fetched_at, '-infinity') AS busy
  FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id
 WHERE i.enabled ORDER BY i.id;

-- $2 issuer
-- name: issuer_read
-- role: app, loop
SELECT {{issuer_source}}, i.version, k.version AS keys_version, i.sign_in, i.bearer, i.not_before, i.config ? 'algorithms' AS own_algorithms,
       i.client_secret, k.discovery, k.keys
  FROM issuer i JOIN issuer_key_set k ON k.org_id = i.org_id AND k.issuer_id = i.id
 WHERE i.org_id = $1 AND i.id = $2::uuid;

-- Of all replicas one may try, once in the pause. $2 issuer $3 pause in seconds $4 seconds that a discovery document is used
-- name: issuer_keys_claim
WITH claim AS (
  UPDATE issuer_key_set k SET tried_at = now(), error = ''
   WHERE k.org_id = $1 AND k.issuer_id = $2::uuid AND (k.tried_at IS NULL OR k.tried_at <= now() - $3::int * interval '1 second')
  RETURNING k.issuer_id, CASE WHEN k.discovery_at > now() - $4::int * interval '1 second' THEN k.discovery ELSE '' END AS discovery
)
SELECT {{issuer_source}}, c.discovery FROM claim c JOIN issuer i ON i.org_id = $1 AND i.id = c.issuer_id;

-- $2 issuer $3 discovery document, NULL = as stored $4 keys $5 seconds to keep them $6 usable keys $7 unusable ones
-- name: issuer_keys_store
UPDATE issuer_key_set k SET discovery = coalesce($3, k.discovery), discovery_at = CASE WHEN $3 IS NULL THEN k.discovery_at ELSE now() END,
       keys = $4, fetched_at = now(), expires_at = now() + $5::int * interval '1 second', error = '', count = $6::int, unusable = $7::jsonb,
       version = k.version + CASE WHEN k.keys = $4 AND k.discovery = coalesce($3, k.discovery) THEN 0 ELSE 1 END
 WHERE k.org_id = $1 AND k.issuer_id = $2::uuid;

-- The set that was had before is used on. $2 issuer $3 why
-- name: issuer_keys_failed
UPDATE issuer_key_set k SET error = left($3, 1023) WHERE k.org_id = $1 AND k.issuer_id = $2::uuid;

-- ---------------------------------------------------------------- whom a token is about
-- fragment: bearer_caller
'token' AS kind, $1::uuid AS org_id, p.id AS credential_id, p.id AS subject_id, p.name, r.roles, r.grants, p.platform_admin,
NULL::uuid AS node_id, NULL::uuid AS cluster_id, NULL::timestamptz AS expires_at, {{org_suspended}} AS suspended

-- Why the org is suspended; NULL = it is not.
-- fragment: org_suspended
(SELECT o.suspend_reason FROM org o WHERE o.id = $1 AND o.suspended_at IS NOT NULL)

-- `due`: something is worth writing down. `ended`: issued before the person was signed out everywhere.
-- $2 issuer $3 iss $4 subject $5 groups $6 issued at $7 name
-- name: bearer_lookup
SELECT {{bearer_caller}}, p.disabled_at IS NOT NULL AS disabled, coalesce($6::timestamptz < d.not_before, false) AS ended,
       d.seen_at < now() - interval '5 minutes' OR d.issuer_id IS DISTINCT FROM $2::uuid OR p.name <> left($7, 255)
         OR (d.groups IS DISTINCT FROM $5::text[] AND d.groups_at <= $6::timestamptz) AS due
  FROM person_identity d JOIN person p ON p.id = d.person_id
       JOIN issuer i ON i.org_id = $1 AND i.id = $2::uuid AND i.enabled AND i.bearer
       CROSS JOIN LATERAL person_roles($1, p.id, $2::uuid, $5::text[]) r
 WHERE d.org_id = $1 AND d.issuer = $3 AND d.subject = $4;

-- No row: the issuer has just been removed. Who comes for the first time becomes a person, whose id is made of org, issuer and subject, so that of two at once both make the same.
-- $2 issuer $3 iss $4 subject $5 groups $6 issued at $7 name $8 email $9 the person's id $10 actor $11 context
-- name: bearer_keep
WITH live AS MATERIALIZED (
  SELECT i.id FROM issuer i WHERE i.org_id = $1 AND i.id = $2::uuid AND i.enabled AND i.bearer FOR KEY SHARE
), known AS (
  SELECT d.person_id FROM person_identity d WHERE d.org_id = $1 AND d.issuer = $3 AND d.subject = $4
), made AS (
  INSERT INTO person (id, name, federated) SELECT $9::uuid, left($7, 255), true FROM live WHERE NOT EXISTS (SELECT FROM known)
  ON CONFLICT (id) DO NOTHING RETURNING id
), kept AS (
  INSERT INTO person_identity AS d (org_id, issuer, subject, issuer_id, person_id, email, groups, groups_at)
  SELECT $1, $3, $4, l.id, coalesce((SELECT k.person_id FROM known k), $9::uuid), left($8, 320), $5::text[], $6::timestamptz FROM live l
  ON CONFLICT (org_id, issuer, subject) DO UPDATE SET seen_at = now(), issuer_id = excluded.issuer_id, email = excluded.email,
    groups = CASE WHEN d.groups_at <= excluded.groups_at THEN excluded.groups ELSE d.groups END,
    groups_at = greatest(d.groups_at, excluded.groups_at)
  RETURNING d.person_id, d.not_before
), renamed AS (
  UPDATE person p SET name = left($7, 255) FROM known k WHERE p.id = k.person_id AND p.federated AND p.name <> left($7, 255)
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'person.joined', $10, left($7, 255) || ' came by an issuer for the first time',
         jsonb_build_object('person_id', m.id, 'issuer_id', $2::uuid) FROM head h, made m
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($11::jsonb || jsonb_build_object('actor', $10::text, 'action', 'person.create', 'target', m.id, 'target_name', left($7, 255),
              'outcome', 'done', 'before', NULL, 'after', jsonb_build_object('issuer', $3::text, 'subject', $4::text, 'email', left($8, 320))))::text
    FROM head h, made m
)
SELECT 'token' AS kind, $1::uuid AS org_id, k.person_id AS credential_id, k.person_id AS subject_id, left($7, 255) AS name, r.roles, r.grants,
       coalesce(p.platform_admin, false) AS platform_admin, NULL::uuid AS node_id, NULL::uuid AS cluster_id, NULL::timestamptz AS expires_at,
       {{org_suspended}} AS suspended,
       p.disabled_at IS NOT NULL AS disabled, coalesce($6::timestamptz < k.not_before, false) AS ended, false AS due
  FROM kept k LEFT JOIN person p ON p.id = k.person_id CROSS JOIN LATERAL person_roles($1, k.person_id, $2::uuid, $5::text[]) r;

-- Whom a tested token would be, and what it would be allowed. $2 issuer $3 iss $4 subject $5 groups
-- name: issuer_test_person
WITH who AS (
  SELECT p.id, p.name FROM person_identity d JOIN person p ON p.id = d.person_id WHERE d.org_id = $1 AND d.issuer = $3 AND d.subject = $4
)
SELECT (SELECT row_to_json(w)::text FROM who w) AS person,
       (SELECT coalesce(json_agg(json_build_object('role', r.role,
                 'scope', CASE WHEN r.cluster_id IS NOT NULL THEN 'cluster' WHEN r.project_id IS NOT NULL THEN 'project' ELSE 'org' END,
                 'id', coalesce(r.cluster_id, r.project_id), 'name', coalesce(c.name, p.name), 'via', r.via, 'group', r.group_name)
                 ORDER BY r.via DESC, r.role, c.name, p.name, r.group_name), '[]')::text
          FROM person_rights($1, (SELECT w.id FROM who w), $2::uuid, $5::text[]) r
          LEFT JOIN cluster c ON c.org_id = $1 AND c.id = r.cluster_id LEFT JOIN project p ON p.org_id = $1 AND p.id = r.project_id) AS roles
  FROM org_head h WHERE h.org_id = $1;
