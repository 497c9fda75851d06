-- What agents get from all that an org sets about checks, and the ends of trials.

-- The document of each node whose agent takes settings, made once for nodes of one place. A version is the beginning of its SHA-256.
-- name: settings_resolve
-- role: loop
WITH place AS MATERIALIZED (
  SELECT s.node_id, s.wanted, n.cluster_id, n.gpu_type,
         CASE WHEN EXISTS (SELECT FROM expectation e WHERE e.org_id = $1 AND e.node_id = n.id) THEN n.id END AS own
    FROM node_settings s JOIN node n ON n.org_id = $1 AND n.id = s.node_id AND n.removed_at IS NULL WHERE s.org_id = $1
), spot AS MATERIALIZED (
  SELECT DISTINCT p.cluster_id, p.gpu_type, p.own FROM place p
), doc AS MATERIALIZED (
  SELECT t.cluster_id, t.gpu_type, t.own, jsonb_strip_nulls(jsonb_build_object(
           'off', (SELECT jsonb_agg(o.check_id ORDER BY o.check_id) FILTER (WHERE o.mode = 'off') FROM (SELECT DISTINCT ON (o.check_id) o.check_id, o.mode, o.looks, o.clear_looks FROM check_override o
                      WHERE o.org_id = $1 AND (o.cluster_id IS NULL OR o.cluster_id = t.cluster_id) AND (o.gpu_type = '' OR o.gpu_type = t.gpu_type)
                      ORDER BY o.check_id, o.cluster_id IS NULL, o.gpu_type = '') o),
           'looks', (SELECT jsonb_agg(jsonb_build_object('check_id', o.check_id, 'raise', o.looks, 'clear', o.clear_looks) ORDER BY o.check_id)
                       FILTER (WHERE o.looks IS NOT NULL OR o.clear_looks IS NOT NULL) FROM (SELECT DISTINCT ON (o.check_id) o.check_id, o.mode, o.looks, o.clear_looks FROM check_override o
                      WHERE o.org_id = $1 AND (o.cluster_id IS NULL OR o.cluster_id = t.cluster_id) AND (o.gpu_type = '' OR o.gpu_type = t.gpu_type)
                      ORDER BY o.check_id, o.cluster_id IS NULL, o.gpu_type = '') o),
           'expected', (SELECT nullif(jsonb_strip_nulls(jsonb_build_object(
                          'gpus', (array_agg(e.gpus ORDER BY e.node_id IS NULL, e.cluster_id IS NULL, e.gpu_type = '') FILTER (WHERE e.gpus IS NOT NULL))[1],
                          'ports', (array_agg(e.ports ORDER BY e.node_id IS NULL, e.cluster_id IS NULL, e.gpu_type = '') FILTER (WHERE e.ports IS NOT NULL))[1],
                          'port_gbps', (array_agg(e.port_gbps ORDER BY e.node_id IS NULL, e.cluster_id IS NULL, e.gpu_type = '')
                                        FILTER (WHERE e.port_gbps IS NOT NULL))[1])), '{}')
                          FROM expectation e
                         WHERE e.org_id = $1 AND (e.cluster_id IS NULL OR e.cluster_id = t.cluster_id) AND (e.gpu_type = '' OR e.gpu_type = t.gpu_type)
                           AND (e.node_id IS NULL OR e.node_id = t.own)),
           'checks', (SELECT jsonb_agg(jsonb_build_object('name', c.name, 'version', c.version, 'kind', c.kind, 'title', nullif(c.title, ''),
                                                          'severity', c.severity, 'action', c.action) || c.definition ORDER BY c.name)
                        FROM custom_check c
                       WHERE c.org_id = $1 AND c.mode <> 'off' AND (c.cluster_id IS NULL OR c.cluster_id = t.cluster_id)
                         AND (c.gpu_type = '' OR c.gpu_type = t.gpu_type))))::text AS document
    FROM spot t
), upd AS (
  UPDATE node_settings s SET wanted = v.version, document = v.document
    FROM place p, (SELECT d.cluster_id, d.gpu_type, d.own, d.document, left(encode(sha256(convert_to(d.document, 'UTF8')), 'hex'), 32) AS version FROM doc d) v
   WHERE s.org_id = $1 AND s.node_id = p.node_id AND v.cluster_id = p.cluster_id AND v.gpu_type = p.gpu_type AND v.own IS NOT DISTINCT FROM p.own
     AND p.wanted <> v.version
  RETURNING s.node_id
), head AS (
  UPDATE org_head h SET command_seq = h.command_seq + 1 WHERE h.org_id = $1 AND EXISTS (SELECT FROM upd) RETURNING h.org_id
)
SELECT count(*) AS changed FROM upd, head;

-- Trials whose time is over: the rule holds from now on, also for what it found meanwhile and what is still open.
-- name: check_trial_end
-- role: loop
WITH own AS MATERIALIZED (
  SELECT c.id, c.name, c.cluster_id FROM custom_check c WHERE c.org_id = $1 AND c.shadow_until <= now() ORDER BY c.id FOR UPDATE SKIP LOCKED
), ruled AS MATERIALIZED (
  SELECT o.id, o.check_id, o.cluster_id FROM check_override o WHERE o.org_id = $1 AND o.shadow_until <= now() ORDER BY o.id FOR UPDATE SKIP LOCKED
), own_upd AS (
  UPDATE custom_check c SET shadow_until = NULL FROM own WHERE c.org_id = $1 AND c.id = own.id RETURNING c.id
), ruled_upd AS (
  UPDATE check_override o SET shadow_until = NULL, version = o.version + 1, updated_at = now()
    FROM ruled WHERE o.org_id = $1 AND o.id = ruled.id RETURNING o.id
), due AS MATERIALIZED (
  SELECT i.id FROM incident i JOIN own ON i.check_id = 'custom:' || own.name WHERE i.org_id = $1 AND i.closed_at IS NULL AND i.mode = 'shadow'
  UNION
  SELECT i.id FROM ruled r JOIN incident i ON i.check_id = r.check_id AND i.closed_at IS NULL AND i.mode = 'shadow'
    JOIN node n ON n.org_id = $1 AND n.id = i.node_id
    JOIN LATERAL (SELECT o.id, o.mode, o.threshold FROM check_override o
                   WHERE o.org_id = $1 AND o.check_id = i.check_id AND (o.cluster_id IS NULL OR o.cluster_id = i.cluster_id)
                     AND (o.gpu_type = '' OR o.gpu_type = n.gpu_type)
                   ORDER BY o.cluster_id IS NULL, o.gpu_type = '' LIMIT 1) o ON o.id = r.id
   WHERE i.org_id = $1 AND i.count >= coalesce(o.threshold, 1)
), held AS MATERIALIZED (
  SELECT i.id FROM incident i JOIN due ON due.id = i.id WHERE i.org_id = $1 ORDER BY i.id FOR NO KEY UPDATE OF i
), inc AS (
  UPDATE incident i SET mode = 'live', version = i.version + 1 FROM held WHERE i.org_id = $1 AND i.id = held.id
  RETURNING i.id, i.no, i.cluster_id, i.node_id, i.severity, i.summary, i.check_id, i.code, i.device, i.node_fault
), fact AS MATERIALIZED (
  SELECT 1 AS place, 'check.activated' AS type, 'info' AS severity, own.cluster_id, NULL::uuid AS node_id, NULL::uuid AS incident_id,
         'Check custom:' || own.name || ' is not in shadow any more: its trial is over.' AS summary,
         jsonb_build_object('check_id', 'custom:' || own.name) AS data, own.id AS target, 'custom:' || own.name AS name FROM own JOIN own_upd u ON u.id = own.id
  UNION ALL
  SELECT 1, 'check.activated', 'info', r.cluster_id, NULL, NULL, 'Check ' || r.check_id || ' is not in shadow any more: the trial of its change is over.',
         jsonb_build_object('check_id', r.check_id, 'override_id', r.id), r.id, r.check_id FROM ruled r JOIN ruled_upd u ON u.id = r.id
  UNION ALL
  SELECT 2, 'incident.changed', i.severity, i.cluster_id, i.node_id, i.id, i.summary,
         jsonb_build_object('no', i.no, 'check_id', i.check_id, 'code', i.code, 'device', i.device, 'node_fault', i.node_fault, 'mode', 'live'), NULL, NULL
    FROM inc i
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + f.n FROM (SELECT count(*) AS n FROM fact) f WHERE h.org_id = $1 AND f.n > 0
  RETURNING h.event_seq - f.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.place, f.incident_id, f.name), f.type, f.severity, f.cluster_id, f.node_id, f.incident_id,
         f.summary, f.data FROM head, fact f
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', 'muster', 'credential', NULL, 'action', 'check.activate', 'target', f.target, 'target_name', f.name,
                               'outcome', 'done', 'before', json_build_object('mode', 'shadow'), 'after', json_build_object('mode', 'live'))::text
    FROM head, fact f WHERE f.place = 1
)
SELECT count(*) AS changed FROM fact, head;

-- What a node's agent should run and what it runs.
-- name: node_settings_get
SELECT CASE WHEN n.id IS NULL THEN 404 ELSE 200 END AS status, h.event_seq + h.rollup_version AS version,
       CASE WHEN n.id IS NOT NULL THEN json_build_object(
         'node_id', n.id, 'takes_settings', s.node_id IS NOT NULL, 'wanted', s.wanted, 'running', s.running, 'running_at', s.running_at, 'refused', s.refused,
         'document', CASE WHEN s.document <> '' THEN s.document::json END)::text END AS body
  FROM org_head h LEFT JOIN node n ON n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL
  LEFT JOIN node_settings s ON s.org_id = $1 AND s.node_id = n.id WHERE h.org_id = $1;
