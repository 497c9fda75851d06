-- Events: what happened, newest first. Statements by what leads the index; the stream has its own (server/handlers/events.c).

-- fragment: event_fields
e.seq, e.at, e.type, e.severity, e.cluster_id, e.node_id,
(SELECT n.name FROM node n WHERE n.org_id = $1 AND n.id = e.node_id) AS node_name,
e.incident_id, e.repair_id, e.actor, e.summary, e.data

-- fragment: event_columns
e.seq, e.at, e.type, e.severity, e.cluster_id, e.node_id, e.incident_id, e.repair_id, e.actor, e.summary, e.data

-- fragment: event_filter
e.org_id = $1 AND ($4::text[] IS NULL OR e.type = ANY ($4)) AND ($5::text[] IS NULL OR e.severity = ANY ($5))
AND e.at >= CASE WHEN $6::timestamptz IS NULL THEN '-infinity' ELSE $6 END
AND e.at < CASE WHEN $7::timestamptz IS NULL THEN 'infinity' ELSE $7 END

-- The cursor is "microseconds:seq" of the last row.
-- fragment: event_cursor_at
CASE WHEN $10::text ~ '^[0-9]{1,16}:[0-9]{1,18}$'
     THEN timestamptz 'epoch' + split_part($10, ':', 1)::bigint * interval '1 microsecond' ELSE 'infinity' END

-- The first condition chooses partitions, the second the place.
-- fragment: event_place
e.at <= {{event_cursor_at}} AND (e.at, e.seq) < ({{event_cursor_at}},
  CASE WHEN $10 ~ '^[0-9]{1,16}:[0-9]{1,18}$' THEN split_part($10, ':', 2)::bigint ELSE 9223372036854775807 END)

-- fragment: event_page
SELECT CASE WHEN $2::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2) THEN 404 ELSE 200 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $9::int THEN (array_agg((extract(epoch FROM e.at) * 1000000)::bigint || ':' || e.seq ORDER BY e.at DESC, e.seq DESC))[$9::int] END
          FROM page e) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.at DESC, t.seq DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT {{event_fields}} FROM page e ORDER BY e.at DESC, e.seq DESC LIMIT $9::int) t) AS body
  FROM org_head h WHERE h.org_id = $1

-- All take: $2 cluster $3 node $4 types $5 severities $6 since $7 until $8 after (a seq) $9 limit $10 cursor

-- name: event_list_org
WITH page AS MATERIALIZED (
  SELECT {{event_columns}} FROM event e
   WHERE {{event_filter}} AND {{event_place}} AND $3::uuid IS NULL AND $8::bigint IS NULL
   ORDER BY e.at DESC, e.seq DESC LIMIT $9::int + 1
)
{{event_page}};

-- name: event_list_cluster
WITH page AS MATERIALIZED (
  SELECT {{event_columns}} FROM event e
   WHERE {{event_filter}} AND {{event_place}} AND e.cluster_id = $2::uuid AND $3::uuid IS NULL AND $8::bigint IS NULL
   ORDER BY e.at DESC, e.seq DESC LIMIT $9::int + 1
)
{{event_page}};

-- name: event_list_node
WITH page AS MATERIALIZED (
  SELECT {{event_columns}} FROM event e
   WHERE {{event_filter}} AND {{event_place}} AND e.node_id = $3::uuid AND ($2::uuid IS NULL OR e.cluster_id = $2) AND $8::bigint IS NULL
   ORDER BY e.at DESC, e.seq DESC LIMIT $9::int + 1
)
{{event_page}};

-- What came after a seq, oldest first, for followers that poll. The cursor is the last seq.
-- name: event_list_after
WITH page AS MATERIALIZED (
  SELECT {{event_columns}} FROM event e
   WHERE {{event_filter}} AND ($2::uuid IS NULL OR e.cluster_id = $2) AND ($3::uuid IS NULL OR e.node_id = $3)
     AND e.seq > CASE WHEN $10::text ~ '^[0-9]{1,18}$' THEN $10::bigint ELSE $8::bigint END
   ORDER BY e.seq LIMIT $9::int + 1
)
SELECT CASE WHEN $2::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2) THEN 404 ELSE 200 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $9::int THEN (array_agg(e.seq ORDER BY e.seq))[$9::int]::text END FROM page e) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.seq), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT {{event_fields}} FROM page e ORDER BY e.seq LIMIT $9::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- A person's note. $2 cluster $3 key $4 fingerprint $5 actor $6 context $7 summary $8 node
-- name: note_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cl AS MATERIALIZED (
  SELECT c.id, c.name, n.id AS node_id, n.name AS node_name FROM cluster c
    LEFT JOIN node n ON n.org_id = $1 AND n.id = $8::uuid AND n.cluster_id = c.id AND n.removed_at IS NULL
   WHERE c.org_id = $1 AND c.id = $2::uuid
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM cl
   WHERE h.org_id = $1 AND ($8 IS NULL OR cl.node_id IS NOT NULL) AND NOT EXISTS (SELECT FROM seen)
  RETURNING h.event_seq
), ev AS (
  INSERT INTO event AS e (org_id, seq, type, cluster_id, node_id, actor, summary)
  SELECT $1, h.event_seq, 'note.added', cl.id, cl.node_id, $5, $7 FROM head h, cl
  RETURNING {{event_columns}}
), act AS MATERIALIZED (
  SELECT {{event_fields}} FROM ev e
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 201, row_to_json(a)::text FROM act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'note.add', 'target', coalesce(cl.node_id, cl.id),
                                              'target_name', coalesce(cl.node_name, cl.name), 'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM act a, cl
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.seq IS NOT NULL THEN 201 WHEN cl.id IS NULL THEN 404
            ELSE 422 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.seq IS NULL AND cl.id IS NOT NULL THEN '#/node_id' END AS pointer,
       CASE WHEN s.status IS NULL AND a.seq IS NULL AND cl.id IS NOT NULL THEN 'It names no node of this cluster.' END AS detail,
       s.status IS NOT NULL AS replayed,
       '/api/v1/events?after=' || coalesce(a.seq, (s.body::json->>'seq')::bigint) - 1 || '&limit=1' AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cl ON true LEFT JOIN act a ON true;

-- How many events of each kind a bucket holds. $2 cluster $3 since $4 until $5 buckets
-- name: event_strip
WITH w AS MATERIALIZED (
  SELECT c.id, extract(epoch FROM $4::timestamptz - $3::timestamptz) / $5::int AS seconds FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid
), n AS (
  SELECT least(floor(extract(epoch FROM e.at - $3::timestamptz) / w.seconds)::integer, $5::int - 1) AS b,
         CASE WHEN e.type = 'incident.opened' THEN CASE e.severity WHEN 'critical' THEN 'fault' ELSE 'warning' END
              WHEN starts_with(e.type, 'repair.') THEN 'repair'
              WHEN e.type IN ('node.state_changed', 'node.booted', 'node.joined', 'node.removed', 'node.cordoned', 'node.uncordoned') THEN 'state'
              WHEN starts_with(e.type, 'check.') OR e.type = 'collector.changed' THEN 'check' ELSE 'other' END AS kind
    FROM w JOIN event e ON e.org_id = $1 AND e.cluster_id = w.id AND e.at >= $3::timestamptz AND e.at < $4::timestamptz
), t AS (
  SELECT $3::timestamptz + i * (w.seconds * interval '1 second') AS at, coalesce(sum(1) FILTER (WHERE n.kind = 'fault'), 0) AS fault,
         coalesce(sum(1) FILTER (WHERE n.kind = 'warning'), 0) AS warning, coalesce(sum(1) FILTER (WHERE n.kind = 'repair'), 0) AS repair,
         coalesce(sum(1) FILTER (WHERE n.kind = 'state'), 0) AS state, coalesce(sum(1) FILTER (WHERE n.kind = 'check'), 0) AS check,
         coalesce(sum(1) FILTER (WHERE n.kind = 'other'), 0) AS other
    FROM w CROSS JOIN generate_series(0, $5::int - 1) i LEFT JOIN n ON n.b = i
   GROUP BY i, w.seconds
)
SELECT CASE WHEN EXISTS (SELECT FROM w) THEN 200 ELSE 404 END AS status, h.event_seq + h.rollup_version AS version,
       (SELECT row_to_json(x)::text FROM (SELECT $3::timestamptz AS since, $4::timestamptz AS until, round(w.seconds, 3) AS bucket_seconds,
                                                 (SELECT json_agg(row_to_json(t) ORDER BY t.at) FROM t) AS buckets FROM w) x) AS body
  FROM org_head h WHERE h.org_id = $1;
