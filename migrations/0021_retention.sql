-- Rows that grow with time end with their partitions: they are detached and dropped, never deleted row by row.
SET LOCAL search_path = muster;

-- Drops the oldest partition that lies wholly before its table's period, and gives its name; '' when there is none, when another replica
-- is at it, or when the lock was not to be had: the next call tries again. Days: 0 keeps all. The audit log is no part of this: its
-- chain is checked from its first row on.
CREATE FUNCTION partition_drop(event_days integer, history_days integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE p record;
BEGIN
  IF event_days <> 0 AND event_days < 7 OR history_days <> 0 AND history_days < 31 THEN
    RAISE EXCEPTION 'events are kept for at least 7 days and history for at least 31';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('muster.partition_drop')) THEN RETURN ''; END IF;
  SELECT d.parent, d.child INTO p
    FROM (SELECT t.relname AS parent, c.relname AS child,
                 substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)')::timestamptz AS until,
                 CASE t.relname WHEN 'event' THEN event_days ELSE history_days END AS days
            FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class t ON t.oid = i.inhparent
            JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace
           WHERE s.nspname = 'muster' AND t.relkind = 'p' AND t.relname IN ('event', 'node_transition', 'cluster_history')) d
   WHERE d.days > 0 AND d.until <= now() - make_interval(days => d.days)
   ORDER BY d.until, d.child LIMIT 1;
  IF NOT FOUND THEN RETURN ''; END IF;
  EXECUTE format('ALTER TABLE muster.%I DETACH PARTITION muster.%I', p.parent, p.child);
  EXECUTE format('DROP TABLE muster.%I', p.child);
  RETURN p.child;
EXCEPTION WHEN lock_not_available THEN
  RETURN '';
END $$;
REVOKE ALL ON FUNCTION partition_drop(integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION partition_drop(integer, integer) TO muster_loop;
