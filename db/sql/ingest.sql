-- The writers' statements: a batch of reports of any orgs, as muster_ingest (five tables, column grants).
-- The arrays are parallel; the belt instead of one org is the join on both keys.

-- Readings. Sorted by (org, node), the last report of each node only. An older report changes nothing.
-- Columns of gpu_* are array texts ('{97,98,NULL}'). A machine never goes back to an earlier boot: a report of one is a strike. So is
-- an older report of another boot, since the number of reports grows across boots; ingest_strikes counts those.
-- name: ingest_state
-- role: ingest
-- scope: global
WITH upd AS (
  UPDATE node_latest t
     SET seq = u.seq, seen_at = now(), boot_id = u.boot_id,
         old_boots = CASE WHEN u.boot_id <> t.boot_id THEN (t.boot_id || t.old_boots)[1:8] ELSE t.old_boots END,
         strikes = CASE WHEN u.boot_id <> t.boot_id
                        THEN CASE WHEN u.boot_id = ANY (t.old_boots) THEN least(t.strikes + 1, 9) ELSE 0 END ELSE t.strikes END, ready = u.ready, cpu_permille = u.cpu, mem_used_mib = u.mem,
         mem_total_mib = u.mem_total, disk_permille = u.disk, net_rx_mbps = u.net_rx, net_tx_mbps = u.net_tx,
         fabric_rx_mbps = u.fabric_rx, fabric_tx_mbps = u.fabric_tx, gpu_util = u.util::smallint[], gpu_mem_mib = u.gpu_mem::integer[],
         gpu_mem_total_mib = u.gpu_mem_total::integer[], gpu_temp_c = u.temp::smallint[], gpu_power_w = u.power::smallint[],
         gpu_util_permille = u.util_mean, gpu_mem_used_mib = u.gpu_mem_used, gpu_mem_all_mib = u.gpu_mem_all, gpu_temp_max_c = u.temp_max
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::boolean[], $6::smallint[], $7::integer[], $8::integer[],
                $9::smallint[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::text[], $15::text[], $16::text[],
                $17::text[], $18::text[], $19::smallint[], $20::integer[], $21::integer[], $22::smallint[])
         AS u(org_id, node_id, seq, boot_id, ready, cpu, mem, mem_total, disk, net_rx, net_tx, fabric_rx, fabric_tx, util, gpu_mem,
              gpu_mem_total, temp, power, util_mean, gpu_mem_used, gpu_mem_all, temp_max)
   WHERE t.org_id = u.org_id AND t.node_id = u.node_id AND t.seq < u.seq
  RETURNING t.seq
)
SELECT count(*) AS updated FROM upd;

-- name: ingest_strikes
-- role: ingest
-- scope: global
UPDATE node_latest t
   SET strikes = least(t.strikes + 1, 9),
       old_boots = CASE WHEN u.boot_id = ANY (t.old_boots) THEN t.old_boots ELSE (u.boot_id || t.old_boots)[1:8] END
  FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[]) AS u(org_id, node_id, seq, boot_id)
 WHERE t.org_id = u.org_id AND t.node_id = u.node_id AND t.seq >= u.seq AND t.boot_id <> u.boot_id;

-- Events: the marks make each count exactly once, then what is new is folded into open incidents.
-- kind 0 is a fault, 1 says that its condition is gone, 2 is a note of the agent's own (no incident).
-- In one call a key (node, device, check, code) has faults or clears, never both, and a (node, boot, stream, seq) stands once.
-- `lines` is JSON objects joined by commas, '' for none. Order of locks: marks, incidents, org_head, then new incidents
-- (whoever makes one holds the head). Answers a row for each org that got event rows.
-- Rows of CTEs are underestimated, so a join of two of them may become a nested loop: there is only the one with mk (few rows).
-- name: ingest_events
-- role: ingest
-- scope: global
WITH ev AS MATERIALIZED (
  SELECT x.org_id, x.cluster_id, x.node_id, x.boot_id, x.stream, x.seq, x.kind, x.id, x.at, x.device, x.check_id, x.code, x.severity,
         x.action, x.node_fault, x.clears, x.quiet_seconds, x.n, x.summary, x.lines, x.kernel_seq, x.ord
    FROM ROWS FROM (unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::smallint[], $6::bigint[], $7::smallint[], $8::uuid[],
                           $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::boolean[], $16::text[],
                           $17::integer[], $18::bigint[], $19::text[], $20::text[], $21::bigint[]),
                    generate_series(1, cardinality($6::bigint[])))
         AS x(org_id, cluster_id, node_id, boot_id, stream, seq, kind, id, at, device, check_id, code, severity,
                              action, node_fault, clears, quiet_seconds, n, summary, lines, kernel_seq, ord)
), mk AS (
  INSERT INTO node_stream AS s (org_id, node_id, boot_id, stream, last_seq, prev_seq)
  SELECT e.org_id, e.node_id, e.boot_id, e.stream, max(e.seq), -1 FROM ev e GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
  ON CONFLICT (org_id, node_id, boot_id, stream) DO UPDATE SET prev_seq = s.last_seq, last_seq = excluded.last_seq
   WHERE s.last_seq < excluded.last_seq
  RETURNING org_id, node_id, boot_id, stream, prev_seq
), new AS MATERIALIZED (
  SELECT e.org_id, e.cluster_id, e.node_id, e.boot_id, e.kind, e.id, e.at, e.device, e.check_id, e.code, e.severity, e.action,
         e.node_fault, e.clears, e.quiet_seconds, e.n, e.summary, e.lines, e.kernel_seq, e.ord
    FROM ev e JOIN mk ON mk.org_id = e.org_id AND mk.node_id = e.node_id AND mk.boot_id = e.boot_id AND mk.stream = e.stream
   WHERE e.seq > mk.prev_seq
), fact AS MATERIALIZED (
  SELECT w.org_id, w.node_id, w.device, w.check_id, w.code, w.total, w.first_at, w.last_at, w.kind, w.id AS new_id, w.cluster_id,
         w.boot_id, w.severity, w.action, w.node_fault, w.clears, w.quiet_seconds, w.summary, w.ord, w.kernel_seq,
         ('[' || coalesce(w.all_lines, '') || ']')::jsonb AS evidence
    FROM (SELECT n.org_id, n.node_id, n.device, n.check_id, n.code, n.kind, n.id, n.cluster_id, n.boot_id, n.severity, n.action,
                 n.node_fault, n.clears, n.quiet_seconds, n.summary, n.ord, sum(n.n) OVER k AS total, min(n.at) OVER k AS first_at,
                 min(n.kernel_seq) OVER k AS kernel_seq, max(n.at) OVER k AS last_at, last_value(n.ord) OVER k AS last_ord, string_agg(nullif(n.lines, ''), ',') OVER k AS all_lines
            FROM new n WHERE n.kind < 2
          WINDOW k AS (PARTITION BY n.org_id, n.node_id, n.device, n.check_id, n.code ORDER BY n.ord
                       ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) w
   WHERE w.ord = w.last_ord
), ruled AS MATERIALIZED (
  -- as the org wants its checks: the nearest override, of a cluster before one of a GPU type before one of all; in shadow while on trial.
  -- Checks of its own have severity, action and mode of their own, and those that it does not know are not recorded.
  SELECT f.org_id, f.node_id, f.device, f.check_id, f.code, f.total, f.first_at, f.last_at, f.kind, f.new_id, f.cluster_id, f.boot_id,
         CASE WHEN o.severity = 'info' OR o.severity = 'warning' AND f.severity = 'critical' THEN o.severity ELSE f.severity END AS severity,
         CASE WHEN f.action = 'none' THEN f.action ELSE coalesce(o.action, f.action) END AS action,
         f.node_fault AND coalesce(o.severity, 'critical') = 'critical' AND (o.own IS NULL OR o.action <> 'none') AS node_fault, f.clears,
         f.quiet_seconds, f.summary, f.ord, f.kernel_seq, f.evidence,
         CASE WHEN o.shadow_until > now() THEN 'shadow' ELSE coalesce(o.mode, CASE WHEN f.own THEN 'off' ELSE 'live' END) END AS mode,
         coalesce(o.threshold, 1) AS threshold
    FROM (SELECT f.*, starts_with(f.check_id, 'custom:') AS own FROM fact f) f LEFT JOIN LATERAL (
      (SELECT o.mode, o.severity, o.action, o.threshold, o.shadow_until, NULL::boolean AS own FROM check_override o
        WHERE NOT f.own AND o.org_id = f.org_id AND o.check_id = f.check_id AND (o.cluster_id IS NULL OR o.cluster_id = f.cluster_id)
          AND (o.gpu_type = '' OR o.gpu_type = (SELECT n.gpu_type FROM node n WHERE n.org_id = f.org_id AND n.id = f.node_id))
        ORDER BY o.cluster_id IS NULL, o.gpu_type = '' LIMIT 1)
      UNION ALL
      SELECT c.mode, c.severity, c.action, 1, c.shadow_until, true FROM custom_check c
       WHERE f.own AND c.org_id = f.org_id AND c.name = substr(f.check_id, 8)
    ) o ON true
   WHERE f.kind = 1 OR coalesce(o.mode, CASE WHEN f.own THEN 'off' ELSE 'live' END) <> 'off'
), cur AS MATERIALIZED (
  SELECT i.org_id, i.id, f.mode, f.threshold, i.severity AS was, i.mode AS mode_was, f.ord, f.kind, f.total, f.last_at, f.boot_id, f.severity, f.action, f.node_fault, f.clears,
         f.quiet_seconds, f.summary, f.evidence
    FROM ruled f JOIN incident i ON i.org_id = f.org_id AND i.node_id = f.node_id AND i.device = f.device AND i.check_id = f.check_id
                               AND i.code = f.code AND i.closed_at IS NULL
   ORDER BY i.org_id, i.node_id, i.device, i.check_id, i.code FOR NO KEY UPDATE OF i
), folded AS (
  UPDATE incident i
     SET count = i.count + CASE WHEN f.kind = 0 THEN f.total ELSE 0 END,
         last_at = CASE WHEN f.kind = 0 THEN greatest(i.last_at, f.last_at) ELSE i.last_at END,
         boot_id = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.boot_id ELSE i.boot_id END,
         severity = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.severity ELSE i.severity END,
         action = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.action ELSE i.action END,
         node_fault = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.node_fault ELSE i.node_fault END,
         clears = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.clears ELSE i.clears END,
         quiet_seconds = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.quiet_seconds ELSE i.quiet_seconds END,
         summary = CASE WHEN f.kind = 0 AND f.last_at >= i.last_at THEN f.summary ELSE i.summary END,
         evidence = CASE WHEN f.evidence = '[]' OR jsonb_array_length(i.evidence) >= 20 THEN i.evidence
                         ELSE jsonb_path_query_array(i.evidence || f.evidence, '$[0 to 19]') END,
         mode = CASE WHEN f.kind = 0 THEN CASE WHEN f.mode = 'live' AND i.count + f.total >= f.threshold THEN 'live' ELSE 'shadow' END ELSE i.mode END,
         closed_at = CASE WHEN f.kind = 1 THEN now() END,
         close_reason = CASE WHEN f.kind = 1 THEN 'Its condition is gone.' ELSE '' END,
         closed_by = CASE WHEN f.kind = 1 THEN 'agent' ELSE '' END,
         version = i.version + CASE WHEN f.kind = 1 OR f.mode <> i.mode OR f.last_at >= i.last_at AND f.severity <> i.severity THEN 1 ELSE 0 END
    FROM cur f
   WHERE i.org_id = f.org_id AND i.id = f.id
  RETURNING i.org_id, i.id, i.cluster_id, i.node_id, i.device, i.check_id, i.code, i.severity, i.summary, i.node_fault, i.mode, f.was, f.mode_was,
            i.closed_at IS NOT NULL AS closed
), fresh AS MATERIALIZED (
  SELECT f.org_id, f.node_id, f.device, f.check_id, f.code, f.total, f.first_at, f.last_at, f.new_id, f.cluster_id, f.boot_id,
         f.severity, f.action, f.node_fault, f.clears, f.quiet_seconds, f.summary, f.ord, f.kernel_seq, f.evidence,
         CASE WHEN f.mode = 'live' AND f.total >= f.threshold THEN 'live' ELSE 'shadow' END AS mode
    FROM ruled f WHERE f.kind = 0 AND f.ord NOT IN (SELECT c.ord FROM cur c)
), want AS MATERIALIZED (
  SELECT w.org_id, count(*) AS events, count(*) FILTER (WHERE w.opens) AS opens
    FROM (SELECT d.org_id, false AS opens FROM folded d WHERE d.closed OR d.severity <> d.was OR d.mode <> d.mode_was
          UNION ALL SELECT f.org_id, true FROM fresh f
          UNION ALL SELECT n.org_id, false FROM new n WHERE n.kind = 2) w
   GROUP BY w.org_id
), lk AS MATERIALIZED (
  SELECT h.org_id FROM org_head h WHERE h.org_id IN (SELECT w.org_id FROM want w) ORDER BY h.org_id FOR NO KEY UPDATE
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + w.events, last_no = h.last_no + w.opens
    FROM lk JOIN want w ON w.org_id = lk.org_id WHERE h.org_id = lk.org_id
  RETURNING h.org_id, h.event_seq - w.events AS seq_base, h.last_no - w.opens AS no_base
), opened AS (
  INSERT INTO incident AS i (org_id, id, no, cluster_id, node_id, device, check_id, code, severity, action, node_fault, clears,
                             quiet_seconds, boot_id, kernel_seq, summary, evidence, count, first_at, last_at, mode)
  SELECT f.org_id, f.new_id, h.no_base + row_number() OVER (PARTITION BY f.org_id ORDER BY f.ord), f.cluster_id, f.node_id, f.device,
         f.check_id, f.code, f.severity, f.action, f.node_fault, f.clears, f.quiet_seconds, f.boot_id, f.kernel_seq, f.summary,
         jsonb_path_query_array(f.evidence, '$[0 to 19]'), f.total, f.first_at, f.last_at, f.mode
    FROM fresh f JOIN head h ON h.org_id = f.org_id
  ON CONFLICT (org_id, node_id, device, check_id, code) WHERE closed_at IS NULL
  DO UPDATE SET count = i.count + excluded.count, last_at = greatest(i.last_at, excluded.last_at)
  RETURNING i.org_id, i.id, i.cluster_id, i.node_id, i.device, i.check_id, i.code, i.severity, i.summary, i.node_fault, i.no, i.mode,
            (xmax = 0) AS is_new
), told AS (
  SELECT d.org_id, d.id AS incident_id, d.cluster_id, d.node_id,
         CASE WHEN d.closed THEN 'incident.closed' ELSE 'incident.changed' END AS type,
         CASE WHEN d.closed OR d.mode <> 'live' THEN 'info' ELSE d.severity END AS severity, d.summary,
         jsonb_build_object('check_id', d.check_id, 'code', d.code, 'device', d.device, 'node_fault', d.node_fault,
                           'severity', d.severity, 'severity_before', d.was,
                           'reason', CASE WHEN d.closed THEN 'Its condition is gone.' END) AS data
    FROM folded d WHERE d.closed OR d.severity <> d.was OR d.mode <> d.mode_was
  UNION ALL
  SELECT o.org_id, o.id, o.cluster_id, o.node_id, CASE WHEN o.is_new THEN 'incident.opened' ELSE 'incident.changed' END,
         CASE o.mode WHEN 'live' THEN o.severity ELSE 'info' END, CASE o.mode WHEN 'live' THEN o.summary ELSE 'In shadow: ' || o.summary END, jsonb_build_object('no', o.no, 'check_id', o.check_id, 'code', o.code, 'device', o.device,
                                      'node_fault', o.node_fault, 'mode', o.mode)
    FROM opened o
  UNION ALL
  SELECT n.org_id, NULL, n.cluster_id, n.node_id, 'stream.dropped', n.severity, n.summary,
         jsonb_build_object('check_id', n.check_id, 'code', n.code, 'count', n.n)
    FROM new n WHERE n.kind = 2
), kept AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, actor, summary, data)
  SELECT t.org_id, h.seq_base + row_number() OVER (PARTITION BY t.org_id ORDER BY t.type DESC, t.incident_id), t.type, t.severity,
         t.cluster_id, t.node_id, t.incident_id, 'agent', t.summary, t.data
    FROM told t JOIN head h ON h.org_id = t.org_id
)
SELECT h.org_id FROM head h;
