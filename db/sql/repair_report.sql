-- What repairs brought and what faults cost, over a span of time.

-- Node-hours and GPU-hours out of service, of the nodes of cluster c. $3 since $4 until
-- fragment: lost_time
SELECT x.node_id, x.gpus, sum(extract(epoch FROM x.till - x.at)) FILTER (WHERE x.state IN ('unhealthy', 'repairing')) AS seconds
  FROM (SELECT s.node_id, s.gpus, s.state, s.at, coalesce(lead(s.at) OVER (PARTITION BY s.node_id ORDER BY s.at), least($4::timestamptz, now())) AS till
          FROM (SELECT n.id AS node_id, coalesce(n.gpus_expected, nullif((SELECT count(*) FROM device d WHERE d.org_id = $1 AND d.node_id = n.id
                                                                             AND d.type = 'gpu' AND d.present), 0), c.gpus_per_node, 0) AS gpus,
                       t.state, greatest(t.at, $3::timestamptz) AS at
                  FROM node n JOIN cluster c ON c.org_id = $1 AND c.id = n.cluster_id
                  CROSS JOIN LATERAL (
                    SELECT t.state, t.at FROM node_transition t WHERE t.org_id = $1 AND t.node_id = n.id AND t.at >= $3::timestamptz AND t.at < $4::timestamptz
                    UNION ALL (SELECT t.state, t.at FROM node_transition t WHERE t.org_id = $1 AND t.node_id = n.id AND t.at < $3::timestamptz
                                ORDER BY t.at DESC LIMIT 1)) t
                 WHERE n.org_id = $1 AND n.cluster_id = $2::uuid) s) x
 GROUP BY x.node_id, x.gpus

-- Repairs that ended in the span. to_repair counts from the first sign of the fault, else from the proposal. $2 cluster $3 since $4 until
-- $5 succeeded state $6 failed state
-- fragment: ended_repairs
SELECT r.id, r.action, r.state, r.automatic, i.check_id, i.code, extract(epoch FROM r.decided_at - r.created_at) AS to_decide,
       extract(epoch FROM r.ended_at - r.decided_at) AS to_carry_out, extract(epoch FROM r.ended_at - least(r.created_at, i.first_at)) AS to_repair
  FROM repair r LEFT JOIN incident i ON i.org_id = $1 AND i.id = r.incident_id
 WHERE r.org_id = $1 AND r.cluster_id = $2::uuid AND r.ended_at >= $3::timestamptz AND r.ended_at < $4::timestamptz AND r.state IN ($5::text, $6::text)

-- $2 cluster $3 since $4 until $5 succeeded state $6 failed state
-- name: repair_statistics
WITH done AS MATERIALIZED ({{ended_repairs}}), lost AS MATERIALIZED ({{lost_time}})
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status,
       json_build_object(
         'since', $3::timestamptz, 'until', $4::timestamptz,
         'by_action', (SELECT coalesce(json_agg(t ORDER BY t.action), '[]'::json) FROM (
           SELECT d.action, count(*) AS repairs, count(*) FILTER (WHERE d.state = $5::text) AS succeeded, count(*) FILTER (WHERE d.automatic) AS automatic,
                  round(avg(d.to_repair) FILTER (WHERE d.state = $5::text))::bigint AS mean_to_repair_seconds,
                  round(percentile_cont(0.5) WITHIN GROUP (ORDER BY d.to_repair) FILTER (WHERE d.state = $5::text))::bigint AS median_to_repair_seconds,
                  round(avg(d.to_decide))::bigint AS mean_to_decide_seconds, round(avg(d.to_carry_out))::bigint AS mean_to_carry_out_seconds
             FROM done d GROUP BY d.action) t),
         'by_rule', (SELECT coalesce(json_agg(t ORDER BY t.repairs DESC, t.check_id, t.code), '[]'::json) FROM (
           SELECT d.check_id, d.code, count(*) AS repairs, count(*) FILTER (WHERE d.state = $5::text) AS "right",
                  round(count(*) FILTER (WHERE d.state = $5::text)::numeric / count(*), 3)::float8 AS right_ratio
             FROM done d WHERE d.check_id IS NOT NULL GROUP BY d.check_id, d.code ORDER BY count(*) DESC LIMIT 100) t),
         'incidents', (SELECT count(*) FROM incident i WHERE i.org_id = $1 AND i.cluster_id = $2::uuid AND i.first_at >= $3::timestamptz AND i.first_at < $4::timestamptz),
         'node_faults', (SELECT count(*) FROM incident i WHERE i.org_id = $1 AND i.cluster_id = $2::uuid AND i.node_fault
                            AND i.first_at >= $3::timestamptz AND i.first_at < $4::timestamptz),
         'lost_node_hours', (SELECT round(coalesce(sum(l.seconds), 0)::numeric / 3600, 3)::float8 FROM lost l),
         'lost_gpu_hours', (SELECT round(coalesce(sum(l.seconds * l.gpus), 0)::numeric / 3600, 3)::float8 FROM lost l),
         'lost_most', (SELECT coalesce(json_agg(t ORDER BY t.hours DESC, t.node_id), '[]'::json) FROM (
           SELECT l.node_id, (SELECT n.name FROM node n WHERE n.org_id = $1 AND n.id = l.node_id) AS node_name,
                  round(l.seconds::numeric / 3600, 3)::float8 AS hours FROM lost l WHERE l.seconds > 0 ORDER BY l.seconds DESC, l.node_id LIMIT 20) t))::text AS body;

-- The whole span as one Markdown file. $2 cluster $3 since $4 until $5 succeeded state $6 failed state
-- name: incident_report
WITH done AS MATERIALIZED ({{ended_repairs}}), lost AS MATERIALIZED ({{lost_time}}), inc AS MATERIALIZED (
  SELECT i.id, i.no, i.check_id, i.code, i.device, i.severity, i.summary, i.count, i.first_at, i.last_at, i.closed_at, i.close_reason, i.note, i.evidence,
         n.name AS node_name
    FROM incident i JOIN node n ON n.org_id = $1 AND n.id = i.node_id
   WHERE i.org_id = $1 AND i.cluster_id = $2::uuid AND i.first_at < $4::timestamptz AND (i.closed_at IS NULL OR i.closed_at >= $3::timestamptz)
   ORDER BY i.first_at, i.no LIMIT 500
), act AS MATERIALIZED (
  SELECT x.no AS incident_no, r.id, r.no, r.action, r.state, r.requested_by, r.decided_by, r.decided_at, r.comment, r.created_at, r.ended_at
    FROM inc x JOIN repair r ON r.org_id = $1 AND r.cluster_id = $2::uuid AND x.id = ANY (r.incident_ids)
)
SELECT CASE WHEN c.id IS NULL THEN 404 ELSE 200 END AS status,
       '# Incidents of ' || c.name || E'\n\n' || to_char($3::timestamptz, 'YYYY-MM-DD HH24:MI') || ' to ' || to_char($4::timestamptz, 'YYYY-MM-DD HH24:MI') || E' UTC\n\n'
       || '| | |' || E'\n|---|---:|\n'
       || '| Incidents | ' || (SELECT count(*) FROM inc) || E' |\n'
       || '| Open at the end | ' || (SELECT count(*) FROM inc i WHERE i.closed_at IS NULL OR i.closed_at >= $4::timestamptz) || E' |\n'
       || '| Repairs that ended | ' || (SELECT count(*) FROM done) || E' |\n'
       || '| of them succeeded | ' || (SELECT count(*) FROM done d WHERE d.state = $5::text) || E' |\n'
       || '| Node-hours out of service | ' || (SELECT to_char(coalesce(sum(l.seconds), 0) / 3600, 'FM999999990.0') FROM lost l) || E' |\n'
       || '| GPU-hours out of service | ' || (SELECT to_char(coalesce(sum(l.seconds * l.gpus), 0) / 3600, 'FM999999990.0') FROM lost l) || E' |\n'
       || coalesce((SELECT string_agg(
            E'\n## ' || i.no || '. ' || plain(i.summary) || E'\n\n' || 'Node ' || plain(i.node_name) || ', check ' || plain(i.check_id)
            || coalesce(' (' || nullif(plain(i.code), '') || ')', '') || coalesce(', ' || nullif(plain(i.device), ''), '') || ', ' || i.severity
            || ', ' || i.count || CASE i.count WHEN 1 THEN ' event' ELSE ' events' END || E'.\n\n'
            || '- ' || to_char(i.first_at, 'YYYY-MM-DD HH24:MI:SS') || E' first seen\n'
            || coalesce((SELECT string_agg(
                 '- ' || to_char(s.started_at, 'YYYY-MM-DD HH24:MI:SS') || ' repair ' || a.no || ' (' || replace(a.action, '_', ' ') || ') ' || s.state || ': '
                 || plain(s.detail) || CASE WHEN s.actor = 'muster' THEN '' ELSE ' (' || plain(s.actor) || ')' END || E'\n', '' ORDER BY s.started_at, a.no, s.n)
                 FROM act a JOIN repair_step s ON s.org_id = $1 AND s.repair_id = a.id WHERE a.incident_no = i.no), '')
            || CASE WHEN i.closed_at IS NULL THEN E'- still open\n'
                    ELSE '- ' || to_char(i.closed_at, 'YYYY-MM-DD HH24:MI:SS') || ' closed: ' || plain(i.close_reason) || E'\n' END
            || coalesce(E'\n' || nullif(plain(i.note), '') || E'\n', '')
            || coalesce(E'\n' || (SELECT string_agg('    ' || left(regexp_replace(e.line ->> 'text', '[[:cntrl:]]', ' ', 'g'), 300), E'\n' ORDER BY e.place)
                                    FROM jsonb_array_elements(i.evidence) WITH ORDINALITY e(line, place) WHERE e.place <= 5) || E'\n', ''),
            '' ORDER BY i.first_at, i.no) FROM inc i), E'\nNothing happened.\n') AS body
  FROM (SELECT 1) one LEFT JOIN cluster c ON c.org_id = $1 AND c.id = $2::uuid;
