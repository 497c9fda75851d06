-- The first organization of an installation: `musterd init`, as the owner, each statement safe to run again.

-- name: init_org
-- role: migrate
-- scope: global
INSERT INTO org (id, name, title, demo) VALUES ($1::uuid, $2, $3, $4::boolean) ON CONFLICT (name) DO NOTHING;

-- name: init_org_head
-- role: migrate
-- scope: global
INSERT INTO org_head (org_id) SELECT o.id FROM org o WHERE o.name = $1 ON CONFLICT (org_id) DO NOTHING;

-- name: init_audit_head
-- role: migrate
-- scope: global
INSERT INTO audit_head (org_id) SELECT o.id FROM org o WHERE o.name = $1 ON CONFLICT (org_id) DO NOTHING;

-- The first row of an org's chain says who made it.
-- name: init_audit
-- role: migrate
-- scope: global
INSERT INTO audit (org_id, body)
SELECT o.id, json_build_object('actor', 'musterd init', 'action', 'org.create', 'target', o.id, 'target_name', o.name, 'outcome', 'done')::text
  FROM org o JOIN audit_head h ON h.org_id = o.id WHERE o.name = $1 AND h.seq = 0;

-- name: init_project
-- role: migrate
-- scope: global
INSERT INTO project (org_id, id, name)
SELECT o.id, $2::uuid, $3 FROM org o WHERE o.name = $1 ON CONFLICT (org_id, name) DO NOTHING;

-- name: init_cluster
-- role: migrate
-- scope: global
INSERT INTO cluster (org_id, id, project_id, name, healthy_delay_seconds)
SELECT o.id, $2::uuid, p.id, $4, $5::integer FROM org o JOIN project p ON p.org_id = o.id AND p.name = $3
 WHERE o.name = $1 ON CONFLICT (org_id, name) DO NOTHING;

-- name: init_rollup
-- role: migrate
-- scope: global
INSERT INTO cluster_rollup (org_id, cluster_id)
SELECT c.org_id, c.id FROM org o JOIN cluster c ON c.org_id = o.id WHERE o.name = $1 ON CONFLICT (org_id, cluster_id) DO NOTHING;

-- name: init_person
-- role: migrate
-- scope: global
INSERT INTO person (id, name, platform_admin) VALUES ($1::uuid, $2, true) ON CONFLICT (name) WHERE NOT federated DO NOTHING;

-- name: init_membership
-- role: migrate
-- scope: global
INSERT INTO membership (org_id, person_id, role)
SELECT o.id, p.id, 'admin' FROM org o, person p WHERE o.name = $1 AND p.name = $2 AND NOT p.federated
ON CONFLICT (org_id, person_id, role) DO NOTHING;

-- A token file that was lost makes a new token; the old one ends with it.
-- name: init_service_token
-- role: migrate
-- scope: global
INSERT INTO service_token (org_id, id, name, role, platform_admin, token_hash, created_by)
SELECT o.id, $2::uuid, 'administrator', 'admin', $3::boolean, $4::bytea, 'musterd init' FROM org o WHERE o.name = $1
ON CONFLICT (org_id, name) WHERE revoked_at IS NULL DO UPDATE SET token_hash = excluded.token_hash, platform_admin = excluded.platform_admin;
