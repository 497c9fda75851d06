-- A statement is planned once a connection, often while its tables are nearly empty, and that plan is kept: after 10,000 nodes
-- have joined it compares each with each until somebody runs ANALYZE, which throws such plans away. Autovacuum comes by once a
-- minute; this asks for it as soon as a table has doubled. Returns how many tables were looked at anew.
CREATE FUNCTION statistics_refresh() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE t name; made integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('muster.statistics_refresh')) THEN RETURN 0; END IF;
  FOR t IN SELECT s.relname FROM pg_catalog.pg_stat_user_tables s JOIN pg_catalog.pg_class c ON c.oid = s.relid
            WHERE s.schemaname = 'muster' AND c.relkind = 'r' AND NOT c.relispartition
              AND s.n_live_tup > 200 + 2 * greatest(c.reltuples, 0) LOOP
    EXECUTE format('ANALYZE muster.%I', t);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;
REVOKE ALL ON FUNCTION statistics_refresh() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION statistics_refresh() TO muster_loop;
