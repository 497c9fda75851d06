-- Credentials: found before the org is known, so these are global; each calls one listed function.

-- name: auth_lookup
-- scope: global
SELECT kind, org_id, credential_id, subject_id, name, roles, grants, platform_admin, node_id, cluster_id, expires_at, suspended
  FROM auth_lookup($1::bytea);

-- name: join_lookup
-- scope: global
SELECT org_id, cluster_id, token_id FROM join_lookup($1::bytea);

-- name: node_key_lookup
-- scope: global
SELECT org_id, generation, public_key FROM node_key_lookup($1::uuid);

-- name: person_orgs
-- scope: global
SELECT id, name, title, demo, roles FROM person_orgs($1::uuid);

-- Servers poll it and drop cached credentials when it moved.
-- name: auth_epoch
-- role: app, loop
-- scope: global
SELECT auth_epoch, restore_generation, id FROM installation;

-- name: auth_epoch_raise
-- role: app, loop
-- scope: global
UPDATE installation SET auth_epoch = auth_epoch + 1 WHERE one RETURNING auth_epoch;
