-- Roles of a Muster installation. Run once as a superuser, before `musterd migrate`; running it again changes nothing.
-- Passwords are yours to set (ALTER ROLE ... PASSWORD) unless logins come by socket and pg_ident.
DO $$
DECLARE r text;
BEGIN
  FOREACH r IN ARRAY ARRAY['muster_owner', 'muster_migrate', 'muster_app', 'muster_ingest', 'muster_loop', 'muster_backup'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN
      EXECUTE format('CREATE ROLE %I NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOBYPASSRLS', r);
    END IF;
  END LOOP;
END $$;
ALTER ROLE muster_owner NOLOGIN;
ALTER ROLE muster_migrate LOGIN;
ALTER ROLE muster_app LOGIN;
ALTER ROLE muster_ingest LOGIN;
ALTER ROLE muster_loop LOGIN;
-- pg_dump switches row security off and fails without BYPASSRLS.
ALTER ROLE muster_backup LOGIN BYPASSRLS;
GRANT pg_read_all_data TO muster_backup;
GRANT muster_owner TO muster_migrate;

ALTER ROLE muster_app    SET search_path = muster;
ALTER ROLE muster_ingest SET search_path = muster;
ALTER ROLE muster_loop   SET search_path = muster;
ALTER ROLE muster_app    SET timezone = 'UTC';
ALTER ROLE muster_ingest SET timezone = 'UTC';
ALTER ROLE muster_loop   SET timezone = 'UTC';
ALTER ROLE muster_migrate SET timezone = 'UTC';
ALTER ROLE muster_app    SET jit = off;
ALTER ROLE muster_ingest SET jit = off;
ALTER ROLE muster_loop   SET jit = off;
-- A request that waits longer than this has lost its caller.
ALTER ROLE muster_app    SET statement_timeout = '4s';
ALTER ROLE muster_app    SET lock_timeout = '2s';
ALTER ROLE muster_ingest SET statement_timeout = '3s';
-- A writer's plans are made once and must not depend on how full a table was then.
ALTER ROLE muster_ingest SET enable_seqscan = off;
ALTER ROLE muster_ingest SET lock_timeout = '2s';
ALTER ROLE muster_loop   SET statement_timeout = '30s';
ALTER ROLE muster_loop   SET lock_timeout = '2s';
ALTER ROLE muster_app    SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE muster_ingest SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE muster_loop   SET idle_in_transaction_session_timeout = '30s';
