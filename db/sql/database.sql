-- What start-up asks the database about itself.

-- name: schema_exists
-- scope: global
SELECT to_regclass('muster.schema_migration') IS NOT NULL AS present;

-- name: schema_version
-- scope: global
SELECT coalesce(max(version), 0) AS version FROM schema_migration;

-- What the role of this connection could do beyond its work, and whether a commit is durable.
-- name: role_check
-- role: app, ingest, loop
-- scope: global
SELECT current_user::text AS role,
       EXISTS (SELECT FROM pg_roles r WHERE r.rolsuper AND pg_has_role(current_user, r.oid, 'MEMBER')) AS superuser,
       EXISTS (SELECT FROM pg_roles r WHERE r.rolbypassrls AND pg_has_role(current_user, r.oid, 'MEMBER')) AS bypass,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'muster' AND pg_has_role(current_user, c.relowner, 'MEMBER')) AS owner,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'muster' AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'TRUNCATE')) AS truncates,
       has_schema_privilege('muster', 'CREATE') AS creates,
       current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes;
