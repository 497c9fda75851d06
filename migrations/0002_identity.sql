-- Identity: the audit log becomes searchable.
SET LOCAL search_path = muster;

-- What people search by, made from the text that was hashed, so that the two cannot differ. Plain columns, because under
-- row security an index over an expression is not used.
ALTER TABLE audit
  ADD COLUMN actor  text GENERATED ALWAYS AS ((body::jsonb) ->> 'actor') STORED,
  ADD COLUMN action text GENERATED ALWAYS AS ((body::jsonb) ->> 'action') STORED,
  ADD COLUMN target text GENERATED ALWAYS AS ((body::jsonb) ->> 'target') STORED;
CREATE INDEX audit_actor ON audit (org_id, actor, at DESC, seq DESC);
CREATE INDEX audit_action ON audit (org_id, action, at DESC, seq DESC);
CREATE INDEX audit_target ON audit (org_id, target, at DESC, seq DESC);

-- As before, but partitions get the generated columns too.
CREATE OR REPLACE FUNCTION partitions_make(days integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = muster, pg_temp AS $$
DECLARE t text; d date; part text; made integer := 0;
BEGIN
  IF days NOT BETWEEN 0 AND 60 THEN RAISE EXCEPTION 'days must be 0 to 60'; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('muster.partitions_make'));
  FOREACH t IN ARRAY ARRAY['event', 'node_transition', 'cluster_history', 'audit'] LOOP
    FOR i IN -1..days LOOP
      d := (now() AT TIME ZONE 'UTC')::date + i;
      part := t || '_' || to_char(d, 'YYYYMMDD');
      IF to_regclass('muster.' || part) IS NULL THEN
        EXECUTE format('CREATE TABLE muster.%I (LIKE muster.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)', part, t);
        EXECUTE format('ALTER TABLE muster.%I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE muster.%I FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE muster.%I ATTACH PARTITION muster.%I FOR VALUES FROM (%L) TO (%L)', t, part,
                       d::text || ' 00:00:00+00', (d + 1)::text || ' 00:00:00+00');
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
