-- What belongs together: incidents of one cause, parts that fail again, and causes that many nodes share.
-- Each statement is idempotent: any replica may run it at any time. What another one holds is passed over; the loop comes again.

-- The action that holds for an incident i: the driver's own word (Xid 154), or the part's history, before the check's.
-- fragment: incident_action
coalesce(i.action_set, i.action)

-- What counts for a node: an incident of a check that runs in shadow does not.
-- fragment: incident_counts
(i.closed_at IS NULL AND i.mode = 'live' AND i.node_id IS NOT NULL)

-- It belongs to a common cause that is open: repairs that start by themselves are held.
-- fragment: incident_held
EXISTS (SELECT FROM incident c WHERE c.org_id = i.org_id AND c.id = i.common_id AND c.closed_at IS NULL)

-- When the node n booted, or when its driver was replaced: what some checks miss soon after is no fault before a deadline.
-- fragment: node_in_grace
greatest(n.booted_at, n.driver_changed_at)

-- An incident that follows from others is shown with them.
-- fragment: incident_members
(SELECT coalesce(json_agg(row_to_json(t) ORDER BY t.no), '[]'::json)
   FROM (SELECT m.id, m.no, m.node_id, (SELECT n.name FROM node n WHERE n.org_id = m.org_id AND n.id = m.node_id) AS node_name, m.check_id, m.code,
                m.device, m.severity, m.summary, m.count, CASE WHEN m.closed_at IS NULL THEN 'open' ELSE 'closed' END AS state
           FROM incident m WHERE m.org_id = i.org_id AND (m.root_id = i.id OR m.common_id = i.id) ORDER BY m.no LIMIT 200) t)

-- Names for each open incident its root, the part's serial, how often that part has failed so, and the action that follows.
-- $2 checks $3 families, '*' = follows from any fault of the node $4 reaches: 0 a cause, 1 an echo on the same part, 2 of the whole node
-- $5 repeats after which a person takes the part out
--
-- Of one family on one part the root is the first fault: causes before echoes, then by the kernel's own sequence, then by time.
-- name: incident_correlate
-- role: loop
WITH fam AS MATERIALIZED (
  SELECT f.check_id, f.family, f.reach FROM unnest($2::text[], $3::text[], $4::smallint[]) AS f(check_id, family, reach)
), o AS MATERIALIZED (
  SELECT i.id, i.no, i.node_id, i.cluster_id, i.check_id, i.severity, i.action, i.node_fault, i.boot_id, i.kernel_seq, i.first_at, i.last_at,
         i.summary, i.root_id, i.serial AS serial_was, i.repeats AS repeats_was, i.action_set AS action_was, i.device AS told, f.family, f.reach,
         coalesce(d.pci, i.device) AS device, coalesce(nullif(i.serial, ''), d.serial, '') AS serial
    FROM incident i LEFT JOIN fam f ON f.check_id = i.check_id
    LEFT JOIN LATERAL (
      SELECT nullif(d.pci, '') AS pci, d.serial FROM device d
       WHERE d.org_id = $1 AND d.node_id = i.node_id AND d.present AND i.device <> ''
         AND (d.pci = i.device OR d.serial = i.device OR d.type = 'gpu' AND d.index::text = i.device)
       ORDER BY d.pci = i.device DESC, d.id LIMIT 1) d ON true
   WHERE i.org_id = $1 AND {{incident_counts}}
), placed AS (
  SELECT o.*, row_number() OVER (PARTITION BY o.node_id, o.family
                ORDER BY o.node_fault DESC, o.reach, o.severity = 'info', min_boot.at, o.kernel_seq NULLS LAST, o.first_at, o.no) AS place
    FROM o JOIN (SELECT b.node_id, b.boot_id, min(b.first_at) AS at FROM o b GROUP BY b.node_id, b.boot_id) min_boot
      ON min_boot.node_id = o.node_id AND min_boot.boot_id IS NOT DISTINCT FROM o.boot_id
   WHERE o.family IS NOT NULL
), keyed AS (
  SELECT p.*, CASE WHEN p.reach < 2 THEN p.device
                   ELSE first_value(p.device) OVER (PARTITION BY p.node_id, p.family ORDER BY p.reach = 2, p.place) END AS key
    FROM placed p
), top AS (
  SELECT k.*, first_value(k.id) OVER w AS top_id FROM keyed k WINDOW w AS (PARTITION BY k.node_id, k.family, k.key ORDER BY k.place)
), best AS (
  SELECT DISTINCT ON (t.node_id) t.node_id, t.id FROM top t
   WHERE t.top_id = t.id AND t.node_fault AND t.family <> '*' ORDER BY t.node_id, t.first_at, t.no
), joined AS MATERIALIZED (
  SELECT t.id, CASE WHEN r.id <> t.id THEN r.id END AS root_id, r.no AS root_no, r.summary AS root_summary
    FROM top t LEFT JOIN best b ON b.node_id = t.node_id AND t.family = '*'
    JOIN o r ON r.id = coalesce(b.id, t.top_id)
   WHERE r.id <> t.id AND (r.severity <> 'info' OR r.node_fault)
     AND t.first_at BETWEEN r.first_at - interval '10 minutes' AND r.last_at + interval '10 minutes'
), word AS MATERIALIZED (
  SELECT DISTINCT ON (x.root_id) x.root_id, x.action
    FROM (SELECT coalesce(j.root_id, o.id) AS root_id, o.action, o.last_at, o.id FROM o LEFT JOIN joined j ON j.id = o.id
           WHERE o.check_id = 'gpu_recovery_action' AND o.node_fault AND o.action <> 'none') x
   ORDER BY x.root_id, x.last_at DESC, x.id
), want AS MATERIALIZED (
  SELECT o.id, o.no, o.node_id, o.cluster_id, o.severity, o.root_id AS root_was, o.serial_was, o.repeats_was, o.action_was, o.action, o.serial,
         o.summary, j.root_id, j.root_no, j.root_summary, c.repeats,
         CASE WHEN o.node_fault AND c.repeats >= $5::int THEN 'remove'
              WHEN o.node_fault AND o.action IN ('reset_gpu', 'reboot', 'power_cycle') AND w.action <> o.action THEN w.action END AS action_set
    FROM o LEFT JOIN joined j ON j.id = o.id LEFT JOIN word w ON w.root_id = coalesce(j.root_id, o.id)
   CROSS JOIN LATERAL (
      SELECT 1 + count(*)::int AS repeats FROM incident x
       WHERE x.org_id = $1 AND x.check_id = o.check_id AND x.node_fault = o.node_fault AND x.mode = 'live' AND x.id <> o.id AND o.told <> ''
         AND x.first_at > now() - interval '30 days' AND x.first_at <= o.first_at
         AND CASE WHEN o.serial <> '' THEN x.serial = o.serial ELSE x.node_id = o.node_id AND x.device = o.told END) c
), diff AS MATERIALIZED (
  SELECT w.* FROM want w
   WHERE w.root_id IS DISTINCT FROM w.root_was OR w.serial <> w.serial_was OR w.repeats <> w.repeats_was
      OR w.action_set IS DISTINCT FROM w.action_was
   LIMIT 1000
), lk AS MATERIALIZED (
  SELECT i.id FROM diff d JOIN incident i ON i.org_id = $1 AND i.id = d.id AND i.closed_at IS NULL
   ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), upd AS (
  UPDATE incident i SET root_id = d.root_id, serial = d.serial, repeats = d.repeats, action_set = d.action_set,
         action_reason = CASE WHEN d.action_set IS NULL THEN ''
                              WHEN d.action_set = 'remove' AND d.repeats >= $5::int
                              THEN 'This part has failed so ' || d.repeats || ' times in 30 days: a person takes it out.'
                              ELSE 'The driver itself asks for this.' END,
         version = i.version + 1
    FROM lk JOIN diff d ON d.id = lk.id WHERE i.org_id = $1 AND i.id = lk.id
  RETURNING i.id, i.action_reason
), fact AS MATERIALIZED (
  SELECT d.id, d.cluster_id, d.node_id, d.severity,
         'Incident ' || d.no || CASE WHEN d.root_id IS DISTINCT FROM d.root_was AND d.root_id IS NOT NULL
                                     THEN ' follows from incident ' || d.root_no || ': ' || d.root_summary
                                     WHEN d.root_id IS DISTINCT FROM d.root_was THEN ' stands alone again: ' || d.summary
                                     ELSE ': ' || d.summary || '. ' || coalesce(nullif(u.action_reason, ''), 'Its own action holds again.') END AS summary,
         jsonb_build_object('no', d.no, 'root_id', d.root_id, 'action', coalesce(d.action_set, d.action), 'repeats', d.repeats) AS data
    FROM upd u JOIN diff d ON d.id = u.id
   WHERE d.root_id IS DISTINCT FROM d.root_was OR d.action_set IS DISTINCT FROM d.action_was
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM fact) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, incident_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.id), 'incident.changed', f.severity, f.cluster_id, f.node_id, f.id, left(f.summary, 1023), f.data
    FROM head, fact f
)
SELECT (SELECT count(*) FROM upd) AS changed;

-- What nodes share: k places of hits. A rack and a PDU carry every fault, a leaf those of the network, a file server those of its files.
-- Silent nodes count too. $2 checks that count though they are no node fault $3 checks of the network
-- fragment: common_hits
hit AS MATERIALIZED (
  SELECT i.id, i.node_id, i.cluster_id, i.first_at, i.common_id, i.check_id, i.device, n.rack, n.leaf, n.pdu, n.file_server, i.check_id = ANY ($3::text[]) AS net
    FROM incident i JOIN node n ON n.org_id = $1 AND n.id = i.node_id AND n.removed_at IS NULL
   WHERE i.org_id = $1 AND {{incident_counts}} AND i.severity <> 'info' AND (i.node_fault OR i.check_id = ANY ($2::text[]))
     AND i.first_at > now() - interval '10 minutes'
  UNION ALL
  SELECT NULL, n.id, n.cluster_id, n.state_since, NULL, 'silence', '', n.rack, n.leaf, n.pdu, '', true
    FROM node n WHERE n.org_id = $1 AND n.removed_at IS NULL AND n.state = 'unknown' AND n.state_since > now() - interval '1 day'
     AND n.cluster_id NOT IN (SELECT x.cluster_id FROM node x WHERE x.org_id = $1 AND x.removed_at IS NULL AND x.joined_at IS NOT NULL
                               GROUP BY x.cluster_id HAVING count(*) FILTER (WHERE x.state = 'unknown') >= 0.9 * count(*))
), k AS MATERIALIZED (
  SELECT h.id, h.node_id, h.cluster_id, h.first_at, h.common_id, p.kind, p.rank, p.value
    FROM hit h CROSS JOIN LATERAL (VALUES
      ('file server', 1, CASE WHEN h.check_id = 'nfs' THEN coalesce(nullif(h.file_server, ''), h.device) END),
      ('rack', 2, h.rack), ('PDU', 3, h.pdu), ('leaf', 4, CASE WHEN h.net THEN h.leaf END)) AS p(kind, rank, value)
   WHERE p.value <> ''
)

-- Opens an incident for each place where at least $4 nodes failed within a minute. A common cause that was closed after they failed
-- is not opened again. $2 $3 as above $5 ids to use
-- name: common_open
-- role: loop
WITH {{common_hits}}, big AS (
  SELECT k.cluster_id, k.kind, k.rank, k.value FROM k GROUP BY 1, 2, 3, 4 HAVING count(DISTINCT k.node_id) >= $4::int
), burst AS (
  SELECT g.cluster_id, g.kind, g.rank, g.value, a.first_at, b.nodes, b.last_at, b.node_ids
    FROM big g JOIN k a ON a.cluster_id = g.cluster_id AND a.kind = g.kind AND a.value = g.value
   CROSS JOIN LATERAL (SELECT count(DISTINCT x.node_id) AS nodes, max(x.first_at) AS last_at, array_agg(DISTINCT x.node_id) AS node_ids FROM k x
      WHERE x.cluster_id = g.cluster_id AND x.kind = g.kind AND x.value = g.value
        AND x.first_at BETWEEN a.first_at AND a.first_at + interval '60 seconds') b
   WHERE b.nodes >= $4::int
), first AS (
  SELECT DISTINCT ON (b.cluster_id, b.kind, b.value) b.* FROM burst b ORDER BY b.cluster_id, b.kind, b.value, b.first_at
), one AS MATERIALIZED (
  -- the same nodes share a rack and a leaf: one place speaks for them
  SELECT f.*, row_number() OVER (ORDER BY f.first_at, f.cluster_id, f.rank, f.value) AS n FROM first f
   WHERE NOT EXISTS (SELECT FROM first x WHERE x.cluster_id = f.cluster_id AND (x.kind, x.value) <> (f.kind, f.value) AND f.node_ids <@ x.node_ids
                        AND (x.nodes > f.nodes OR x.rank < f.rank OR x.rank = f.rank AND x.value < f.value))
     AND NOT EXISTS (SELECT FROM incident c WHERE c.org_id = $1 AND c.cluster_id = f.cluster_id AND c.node_id IS NULL AND c.check_id = 'common_cause'
                        AND c.last_at >= f.first_at - interval '60 seconds'
                        AND (c.code = f.kind || ' ' || f.value
                             OR c.closed_at IS NULL AND f.node_ids <@ ARRAY(SELECT m.node_id FROM incident m WHERE m.org_id = $1 AND m.common_id = c.id))
                        AND (c.closed_at IS NULL OR c.closed_at >= f.first_at))
   ORDER BY f.first_at, f.cluster_id, f.rank, f.value LIMIT cardinality($5::uuid[])
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n, last_no = h.last_no + c.n FROM (SELECT count(*) AS n FROM one) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS seq_base, h.last_no - c.n AS no_base
), ranked AS (
  SELECT o.*, row_number() OVER (ORDER BY o.n) AS place FROM one o
), ins AS (
  INSERT INTO incident AS i (org_id, id, no, cluster_id, check_id, code, severity, clears, summary, count, first_at, last_at)
  SELECT $1, ($5::uuid[])[r.place], h.no_base + r.place, r.cluster_id, 'common_cause', r.kind || ' ' || r.value, 'critical', 'event',
         r.nodes || ' nodes of ' || r.kind || ' ' || r.value || ' failed within a minute', r.nodes, r.first_at, r.last_at
    FROM ranked r, head h
  ON CONFLICT (org_id, cluster_id, code) WHERE closed_at IS NULL AND node_id IS NULL DO NOTHING
  RETURNING i.id, i.no, i.cluster_id, i.summary, i.code
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, incident_id, summary, data)
  SELECT $1, h.seq_base + row_number() OVER (ORDER BY i.no), 'incident.opened', 'critical', i.cluster_id, i.id,
         i.summary || '. Repairs that start by themselves are held.', jsonb_build_object('no', i.no, 'check_id', 'common_cause', 'code', i.code)
    FROM ins i, head h
)
SELECT count(*) AS opened FROM ins;

-- Marks what belongs to an open common cause, and ends those without a member. $2 $3 as above
-- name: common_mark
-- role: loop
WITH {{common_hits}}, c AS MATERIALIZED (
  SELECT c.id, c.no, c.cluster_id, c.code, c.first_at, c.last_at, c.count, c.summary FROM incident c
   WHERE c.org_id = $1 AND c.node_id IS NULL AND c.check_id = 'common_cause' AND c.closed_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
), mine AS MATERIALIZED (
  SELECT DISTINCT ON (k.id) k.id, k.node_id, k.first_at, c.id AS common_id FROM k JOIN c ON c.cluster_id = k.cluster_id AND c.code = k.kind || ' ' || k.value
     AND k.first_at BETWEEN c.first_at - interval '60 seconds' AND c.last_at + interval '60 seconds'
   WHERE k.id IS NOT NULL AND k.common_id IS NULL ORDER BY k.id, k.rank
), lk AS MATERIALIZED (
  SELECT i.id FROM mine m JOIN incident i ON i.org_id = $1 AND i.id = m.id AND i.closed_at IS NULL ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), marked AS (
  UPDATE incident i SET common_id = m.common_id, version = i.version + 1 FROM lk JOIN mine m ON m.id = lk.id
   WHERE i.org_id = $1 AND i.id = lk.id RETURNING i.id, i.common_id
), grown AS (
  SELECT c.id, max(m.first_at) AS last_at,
         (SELECT count(DISTINCT x.node_id) FROM (SELECT i.node_id FROM incident i WHERE i.org_id = $1 AND i.common_id = c.id
                                                 UNION SELECT y.node_id FROM mine y WHERE y.common_id = c.id) x) AS nodes
    FROM c JOIN mine m ON m.common_id = c.id GROUP BY c.id
), over AS (
  SELECT c.id FROM c
   WHERE NOT EXISTS (SELECT FROM mine m WHERE m.common_id = c.id)
     AND NOT EXISTS (SELECT FROM incident i WHERE i.org_id = $1 AND i.common_id = c.id AND i.closed_at IS NULL)
     AND NOT EXISTS (SELECT FROM k JOIN node n ON n.org_id = $1 AND n.id = k.node_id AND n.state = 'unknown'
                      WHERE k.id IS NULL AND k.cluster_id = c.cluster_id AND c.code = k.kind || ' ' || k.value)
), upd AS (
  UPDATE incident i SET count = greatest(i.count, coalesce(g.nodes, 0)), last_at = greatest(i.last_at, coalesce(g.last_at, i.last_at)),
         summary = regexp_replace(i.summary, '^[0-9]+', greatest(i.count, coalesce(g.nodes, 0))::text),
         closed_at = CASE WHEN v.id IS NOT NULL THEN now() END, closed_by = CASE WHEN v.id IS NOT NULL THEN 'muster' ELSE '' END,
         close_reason = CASE WHEN v.id IS NOT NULL THEN 'Nothing of it is open any more.' ELSE '' END,
         version = i.version + 1
    FROM c LEFT JOIN grown g ON g.id = c.id LEFT JOIN over v ON v.id = c.id
   WHERE i.org_id = $1 AND i.id = c.id AND (v.id IS NOT NULL OR g.nodes > c.count OR g.last_at > c.last_at)
  RETURNING i.id, i.no, i.cluster_id, i.summary, i.closed_at IS NOT NULL AS closed
), fact AS MATERIALIZED (
  SELECT u.id, u.no, u.cluster_id, u.summary FROM upd u WHERE u.closed
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM fact) c
   WHERE h.org_id = $1 AND c.n > 0 RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, incident_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY f.no), 'incident.closed', f.cluster_id, f.id, 'Incident ' || f.no || ' closed: ' || f.summary,
         jsonb_build_object('no', f.no, 'check_id', 'common_cause', 'reason', 'Nothing of it is open any more.')
    FROM head, fact f
)
SELECT (SELECT count(*) FROM marked) + (SELECT count(*) FROM fact) AS changed;
