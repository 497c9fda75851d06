-- Webhooks: subscriptions, what is told to them, and the tries. Secrets are sealed; server/handlers/webhooks.c shows one once.

-- fragment: webhook_fields
w.id, w.name, w.url, w.ca_certificate, to_json(w.kinds) AS kinds, w.cluster_id, w.enabled, w.created_by, w.created_at, w.updated_at,
CASE WHEN w.previous_until > now() THEN w.previous_until END AS previous_until, w.delivered_at, w.failures,
CASE WHEN w.rest_until > now() THEN w.rest_until END AS rest_until, w.disabled_at, w.disabled_reason, w.version

-- fragment: webhook_delivery_fields
d.id, d.event_seq, d.kind, d.state, d.attempts, d.tries, d.next_at, d.created_at, d.ended_at, d.body::json AS body

-- $2 limit $3 cursor
-- name: webhook_list
WITH page AS MATERIALIZED (
  SELECT {{webhook_fields}} FROM webhook w
   WHERE w.org_id = $1 AND ($3::text IS NULL OR w.id < CASE WHEN $3 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $3::uuid END)
   ORDER BY w.id DESC LIMIT $2::int + 1
)
SELECT 200 AS status,
       (SELECT CASE WHEN count(*) > $2::int THEN (array_agg(p.id ORDER BY p.id DESC))[$2::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id DESC LIMIT $2::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: webhook_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, t.version, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{webhook_fields}} FROM webhook w WHERE w.org_id = $1 AND w.id = $2::uuid) t ON true;

-- What happens from now on is told. $2 key $3 fingerprint $4 actor $5 context $6 id $7 sealed secret $8 name $9 url $10 ca_certificate $11 kinds
-- $12 cluster or NULL $13 enabled
-- name: webhook_create
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $2
), place AS (
  SELECT c.id FROM (SELECT 1) one LEFT JOIN cluster c ON c.org_id = $1 AND c.id = $12::uuid WHERE $12 IS NULL OR c.id IS NOT NULL
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM place WHERE h.org_id = $1 AND NOT EXISTS (SELECT FROM seen) RETURNING h.event_seq
), act AS (
  INSERT INTO webhook AS w (org_id, id, name, url, ca_certificate, kinds, cluster_id, enabled, secret, cursor_seq, created_by)
  SELECT $1, $6::uuid, $8, $9, $10, $11::text[], place.id, coalesce($13::boolean, true), $7::bytea, head.event_seq, $4 FROM place, head
  RETURNING {{webhook_fields}}
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'webhook.created', a.cluster_id, $4, 'Webhook ' || a.name || ' was set up', jsonb_build_object('webhook_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $2, $3::bytea, 201, row_to_json(a)::text FROM head h, act a WHERE $2 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'webhook.create', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(a)))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $3 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NULL THEN 422 ELSE 201 END AS status,
       CASE WHEN s.fingerprint <> $3 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN '#/cluster_id' END AS pointer,
       CASE WHEN s.status IS NULL AND a.id IS NULL THEN 'It names no cluster of this organization.' END AS detail,
       s.status IS NOT NULL AS replayed, coalesce(a.version, 1) AS version,
       '/api/v1/webhooks/' || coalesce(a.id::text, s.body::json->>'id') AS next,
       coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- One that is enabled again tells what happens from then on, and what waited has its whole time anew. $2 webhook $3 If-Match $4 actor $5 context
-- $6 name $7 url $8 ca_certificate $9 kinds $10 cluster $11 enabled $12 fields that were given
-- name: webhook_update
WITH cur AS MATERIALIZED (
  SELECT {{webhook_fields}} FROM webhook w WHERE w.org_id = $1 AND w.id = $2::uuid FOR UPDATE
), place AS MATERIALIZED (
  SELECT $10::uuid AS id FROM cur WHERE $10 IS NULL OR EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $10::uuid)
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM cur, place WHERE h.org_id = $1 AND cur.version = $3::bigint RETURNING h.event_seq
), upd AS (
  UPDATE webhook w SET name = coalesce($6, w.name), url = coalesce($7, w.url),
         ca_certificate = CASE WHEN 'ca_certificate' = ANY (string_to_array($12, ',')) THEN $8 ELSE w.ca_certificate END,
         kinds = coalesce($9::text[], w.kinds),
         cluster_id = CASE WHEN 'cluster_id' = ANY (string_to_array($12, ',')) THEN $10::uuid ELSE w.cluster_id END,
         enabled = coalesce($11::boolean, w.enabled),
         cursor_seq = CASE WHEN $11::boolean AND NOT w.enabled THEN head.event_seq ELSE w.cursor_seq END,
         failures = CASE WHEN $11::boolean OR $7 IS NOT NULL THEN 0 ELSE w.failures END,
         rest_until = CASE WHEN $11::boolean OR $7 IS NOT NULL THEN NULL ELSE w.rest_until END,
         disabled_at = CASE WHEN $11::boolean THEN NULL ELSE w.disabled_at END,
         disabled_reason = CASE WHEN $11::boolean THEN '' ELSE w.disabled_reason END,
         updated_at = now(), version = w.version + 1
    FROM head, place WHERE w.org_id = $1 AND w.id = $2::uuid
  RETURNING {{webhook_fields}}
), again AS (
  UPDATE webhook_delivery d SET next_at = now(), until_at = now() + interval '72 hours' FROM upd, cur
   WHERE d.org_id = $1 AND d.webhook_id = upd.id AND d.state = 'waiting' AND upd.enabled AND NOT cur.enabled
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'webhook.updated', u.cluster_id, $4, 'Webhook ' || u.name || ' was changed', jsonb_build_object('webhook_id', u.id)
    FROM head h, upd u
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($5::jsonb || jsonb_build_object('actor', $4::text, 'action', 'webhook.update', 'target', u.id, 'target_name', u.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(u)))::text
    FROM upd u, cur c
)
SELECT CASE WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NULL THEN 404 WHEN c.version <> $3::bigint THEN 412 ELSE 422 END AS status,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN '#/cluster_id' END AS pointer,
       CASE WHEN u.id IS NULL AND c.version = $3::bigint THEN 'It names no cluster of this organization.' END AS detail,
       coalesce(u.version, c.version) AS version, row_to_json(u)::text AS body
  FROM (SELECT 1) one LEFT JOIN cur c ON true LEFT JOIN upd u ON true;

-- Its deliveries go with it. $2 webhook $3 actor $4 context
-- name: webhook_delete
WITH cur AS MATERIALIZED (
  SELECT {{webhook_fields}} FROM webhook w WHERE w.org_id = $1 AND w.id = $2::uuid FOR UPDATE
), act AS (
  DELETE FROM webhook w USING cur WHERE w.org_id = $1 AND w.id = cur.id RETURNING w.id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'webhook.removed', c.cluster_id, $3, 'Webhook ' || c.name || ' was removed', jsonb_build_object('webhook_id', c.id)
    FROM head h, cur c
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($4::jsonb || jsonb_build_object('actor', $3::text, 'action', 'webhook.delete', 'target', c.id, 'target_name', c.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', NULL))::text
    FROM head h, cur c
)
SELECT CASE WHEN EXISTS (SELECT FROM act) THEN 204 ELSE 404 END AS status;

-- What the present one signs, it signs too for a while. $2 webhook $3 key $4 fingerprint $5 actor $6 context $7 overlap_seconds $8 sealed secret
-- name: webhook_rotate
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT {{webhook_fields}} FROM webhook w WHERE w.org_id = $1 AND w.id = $2::uuid AND NOT EXISTS (SELECT FROM seen) FOR UPDATE
), act AS (
  UPDATE webhook w SET secret = $8::bytea, previous_secret = w.secret, version = w.version + 1, updated_at = now(),
         previous_until = now() + coalesce($7::integer, 86400) * interval '1 second'
    FROM cur WHERE w.org_id = $1 AND w.id = cur.id
  RETURNING {{webhook_fields}}
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, actor, summary, data)
  SELECT $1, h.event_seq, 'webhook.rotated', a.cluster_id, $5, 'Webhook ' || a.name || ' has a new secret', jsonb_build_object('webhook_id', a.id)
    FROM head h, act a
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'webhook.rotate', 'target', a.id, 'target_name', a.name,
                                              'outcome', 'done', 'before', row_to_json(c), 'after', row_to_json(a)))::text
    FROM head h, act a, cur c
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true;

-- Newest first. $2 webhook $3 state or NULL $4 limit $5 cursor
-- name: webhook_deliveries
WITH hook AS MATERIALIZED (
  SELECT w.id FROM webhook w WHERE w.org_id = $1 AND w.id = $2::uuid
), page AS MATERIALIZED (
  SELECT d.n, {{webhook_delivery_fields}} FROM webhook_delivery d
   WHERE d.org_id = $1 AND d.webhook_id = $2::uuid AND ($3::text IS NULL OR d.state = $3)
     AND ($5::text IS NULL OR d.n < CASE WHEN $5 ~ '^[0-9]{1,18}$' THEN $5::bigint END)
   ORDER BY d.n DESC LIMIT $4::int + 1
)
SELECT CASE WHEN EXISTS (SELECT FROM hook) THEN 200 ELSE 404 END AS status,
       (SELECT CASE WHEN count(*) > $4::int THEN (array_agg(p.n ORDER BY p.n DESC))[$4::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg((to_jsonb(t) - 'n')::text, ',' ORDER BY t.n DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.n DESC LIMIT $4::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- Once more, with the same id: a receiver that has it already knows it. $2 webhook $3 delivery $4 key $5 fingerprint $6 actor $7 context
-- name: webhook_redeliver
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $4
), cur AS MATERIALIZED (
  SELECT d.id, d.state, d.kind, w.name, w.enabled FROM webhook_delivery d JOIN webhook w ON w.org_id = $1 AND w.id = d.webhook_id
   WHERE d.org_id = $1 AND d.webhook_id = $2::uuid AND d.id = $3::uuid AND NOT EXISTS (SELECT FROM seen) FOR UPDATE OF d
), upd AS (
  UPDATE webhook_delivery d SET state = 'waiting', next_at = now(), until_at = now() + interval '72 hours', ended_at = NULL
    FROM cur WHERE d.org_id = $1 AND d.id = cur.id AND cur.enabled
  RETURNING {{webhook_delivery_fields}}
), woken AS (
  UPDATE webhook w SET rest_until = NULL FROM upd WHERE w.org_id = $1 AND w.id = $2::uuid
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM upd WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, actor, summary, data)
  SELECT $1, h.event_seq, 'webhook.redelivered', $6, 'A delivery of webhook ' || c.name || ' is sent again',
         jsonb_build_object('webhook_id', $2::uuid, 'delivery_id', c.id, 'kind', c.kind)
    FROM head h, cur c
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $4, $5::bytea, 200, row_to_json(u)::text FROM head h, upd u WHERE $4 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($7::jsonb || jsonb_build_object('actor', $6::text, 'action', 'webhook.redeliver', 'target', $2::uuid, 'target_name', c.name, 'outcome', 'done',
                                              'before', jsonb_build_object('state', c.state), 'after', jsonb_build_object('delivery_id', c.id)))::text
    FROM head h, cur c
)
SELECT CASE WHEN s.fingerprint <> $5 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN u.id IS NOT NULL THEN 200 WHEN c.id IS NOT NULL THEN 409
            ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $5 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN c.id IS NOT NULL AND u.id IS NULL THEN 'This webhook is disabled. Enable it first.' END AS detail, 'disabled' AS state,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(u)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN upd u ON true;

-- A delivery that says nothing, tried once at once; until its end is known it counts as failed. $2 webhook $3 key $4 fingerprint $5 actor $6 context
-- $7 id of the delivery
-- name: webhook_test
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT w.id, w.name, w.url, w.ca_certificate, w.secret, CASE WHEN w.previous_until > now() THEN w.previous_secret END AS previous_secret, o.name AS org
    FROM webhook w JOIN org o ON o.id = w.org_id WHERE w.org_id = $1 AND w.id = $2::uuid AND NOT EXISTS (SELECT FROM seen)
), act AS (
  INSERT INTO webhook_delivery AS d (org_id, id, webhook_id, kind, body, state, until_at, ended_at)
  SELECT $1, $7::uuid, c.id, 'webhook.test', json_build_object('type', 'webhook.test', 'timestamp', now(), 'data',
           json_build_object('org_id', $1::uuid, 'org', c.org, 'seq', NULL, 'severity', 'info', 'cluster_id', NULL, 'cluster', NULL, 'node_id', NULL,
                             'node', NULL, 'incident_id', NULL, 'repair_id', NULL, 'actor', $5::text,
                             'summary', 'A test of webhook ' || c.name || '.', 'details', '{}'::json))::text, 'failed', now(), now()
    FROM cur c
  RETURNING d.id, d.body
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, json_build_object('id', a.id)::text FROM act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'webhook.test', 'target', c.id, 'target_name', c.name,
                                              'outcome', 'done', 'before', NULL, 'after', jsonb_build_object('delivery_id', a.id)))::text
    FROM act a, cur c
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL OR c.id IS NOT NULL THEN 200 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem, s.status IS NOT NULL AS replayed,
       coalesce(a.id::text, s.body::json->>'id') AS delivery_id, c.url, c.ca_certificate, c.secret, c.previous_secret, a.body AS payload
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN cur c ON true LEFT JOIN act a ON true;

-- $2 webhook $3 delivery
-- name: webhook_delivery_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT 1) one LEFT JOIN (SELECT {{webhook_delivery_fields}} FROM webhook_delivery d
                                  WHERE d.org_id = $1 AND d.webhook_id = $2::uuid AND d.id = $3::uuid) t ON true;

-- ---------------------------------------------------------------- the loop
-- name: webhook_orgs
-- role: loop
-- scope: global
SELECT DISTINCT w.org_id FROM webhook w ORDER BY w.org_id;

-- Events become deliveries, each once for a webhook. One behind which too much waits is disabled. $2 kinds [{kind, type, to}] $3 events at most
-- $4 how many may wait
-- name: webhook_fan_out
-- role: loop
WITH hook AS MATERIALIZED (
  SELECT w.id, w.cursor_seq, w.kinds, w.cluster_id, least(h.event_seq, w.cursor_seq + $3::int) AS upto
    FROM webhook w JOIN org_head h ON h.org_id = $1
   WHERE w.org_id = $1 AND w.enabled AND w.cursor_seq < h.event_seq
     AND (SELECT count(*) FROM (SELECT FROM webhook_delivery d WHERE d.org_id = $1 AND d.webhook_id = w.id AND d.state = 'waiting' LIMIT $4::int) x) < $4::int
   ORDER BY w.id FOR NO KEY UPDATE OF w SKIP LOCKED
), wanted AS (
  SELECT x.kind, x.type, x."to" FROM jsonb_to_recordset($2::jsonb) AS x(kind text, type text, "to" text)
), mine AS MATERIALIZED (
  SELECT k.id AS webhook_id, x.kind, e.seq, e.at, e.severity, e.cluster_id, e.node_id, e.incident_id, e.repair_id, e.actor, e.summary, e.data
    FROM hook k JOIN event e ON e.org_id = $1 AND e.seq > k.cursor_seq AND e.seq <= k.upto
    JOIN wanted x ON x.type = e.type AND (x."to" = '' OR x."to" = e.data ->> 'to')
   WHERE x.kind = ANY (k.kinds) AND (k.cluster_id IS NULL OR e.cluster_id IS NULL OR e.cluster_id = k.cluster_id)
), made AS (
  INSERT INTO webhook_delivery (org_id, id, webhook_id, event_seq, kind, body, state, next_at, until_at)
  SELECT $1, gen_random_uuid(), m.webhook_id, m.seq, m.kind, json_build_object('type', m.kind, 'timestamp', m.at, 'data',
           json_build_object('org_id', $1::uuid, 'org', o.name, 'seq', m.seq, 'severity', m.severity, 'cluster_id', m.cluster_id, 'cluster', c.name,
                             'node_id', m.node_id, 'node', n.name, 'incident_id', m.incident_id, 'repair_id', m.repair_id, 'actor', m.actor,
                             'summary', left(m.summary, 2000),
                             'details', CASE WHEN octet_length(m.data::text) <= 16384 THEN m.data ELSE '{"omitted": true}'::jsonb END))::text,
         'waiting', now(), now() + interval '72 hours'
    FROM mine m JOIN org o ON o.id = $1 LEFT JOIN cluster c ON c.org_id = $1 AND c.id = m.cluster_id
    LEFT JOIN node n ON n.org_id = $1 AND n.id = m.node_id
   ORDER BY m.seq
  ON CONFLICT DO NOTHING
  RETURNING webhook_id
), moved AS (
  UPDATE webhook w SET cursor_seq = k.upto FROM hook k WHERE w.org_id = $1 AND w.id = k.id RETURNING w.id
)
SELECT (SELECT count(*) FROM made) AS made, (SELECT count(*) FROM hook k JOIN org_head h ON h.org_id = $1 WHERE k.upto < h.event_seq) AS behind,
       (SELECT count(*) FROM moved) AS moved;

-- So much waits that nothing more is kept for it. $2 how many may wait $3 sentence
-- name: webhook_overflow
-- role: loop
WITH act AS (
  UPDATE webhook w SET enabled = false, disabled_at = now(), disabled_reason = $3::text, version = w.version + 1
   WHERE w.org_id = $1 AND w.enabled
     AND (SELECT count(*) FROM (SELECT FROM webhook_delivery d WHERE d.org_id = $1 AND d.webhook_id = w.id AND d.state = 'waiting' LIMIT $2::int) x) >= $2::int
  RETURNING w.id, w.name, w.cluster_id, w.disabled_reason
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + c.n FROM (SELECT count(*) AS n FROM act) c WHERE h.org_id = $1 AND c.n > 0
  RETURNING h.event_seq - c.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY a.id), 'webhook.disabled', 'warning', a.cluster_id,
         'Webhook ' || a.name || ' was disabled: ' || a.disabled_reason, jsonb_build_object('webhook_id', a.id, 'reason', a.disabled_reason)
    FROM head, act a
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', 'webhook.disable', 'target', a.id, 'target_name', a.name, 'outcome', 'done',
                                'before', NULL, 'after', jsonb_build_object('reason', a.disabled_reason))::text
    FROM head, act a
)
SELECT count(*) AS n FROM act;

-- Those that have something to send now and are not being sent to.
-- name: webhook_due
-- role: loop
SELECT w.id FROM webhook w
 WHERE w.org_id = $1 AND w.enabled AND (w.rest_until IS NULL OR w.rest_until <= now()) AND (w.leased_until IS NULL OR w.leased_until < now())
   AND EXISTS (SELECT FROM webhook_delivery d WHERE d.org_id = $1 AND d.webhook_id = w.id AND d.state = 'waiting' AND d.next_at <= now())
 ORDER BY w.failures, w.id LIMIT 200;

-- One sender at a time takes the oldest that is due. $2 webhook $3 lease $4 seconds
-- name: webhook_claim
WITH hook AS MATERIALIZED (
  SELECT w.id, w.url, w.ca_certificate, w.secret, CASE WHEN w.previous_until > now() THEN w.previous_secret END AS previous_secret
    FROM webhook w
   WHERE w.org_id = $1 AND w.id = $2::uuid AND w.enabled AND (w.rest_until IS NULL OR w.rest_until <= now())
     AND (w.leased_until IS NULL OR w.leased_until < now() OR w.lease = $3::uuid)
     FOR NO KEY UPDATE SKIP LOCKED
), next AS MATERIALIZED (
  SELECT d.id, d.body, d.attempts FROM webhook_delivery d JOIN hook ON hook.id = d.webhook_id
   WHERE d.org_id = $1 AND d.state = 'waiting' AND d.next_at <= now() ORDER BY d.n LIMIT 1
), upd AS (
  UPDATE webhook w SET lease = CASE WHEN EXISTS (SELECT FROM next) THEN $3::uuid END,
         leased_until = CASE WHEN EXISTS (SELECT FROM next) THEN now() + make_interval(secs => $4::float8) END
    FROM hook WHERE w.org_id = $1 AND w.id = hook.id
)
SELECT next.id AS delivery_id, next.attempts, hook.url, hook.ca_certificate, hook.secret, hook.previous_secret, next.body AS payload FROM hook, next;

-- How a try ended. The last one, and one that is told to go away, disable the webhook; one that is taken after others were not brings all that
-- wait back at once. $2 webhook $3 delivery $4 HTTP status, 0 = no answer $5 milliseconds $6 why not, '' = taken $7 it is to stop $8 seconds to the
-- next try $9 a test: tried once
-- name: webhook_told
WITH del AS (
  UPDATE webhook_delivery d SET attempts = d.attempts + 1,
         tries = (CASE WHEN jsonb_array_length(d.tries) >= 20 THEN d.tries - 0 ELSE d.tries END)
                 || jsonb_build_object('at', now(), 'status', nullif($4::int, 0), 'duration_ms', $5::bigint, 'error', $6::text),
         state = CASE WHEN $6::text = '' THEN 'delivered' WHEN $9::boolean OR $7::boolean OR now() >= d.until_at THEN 'failed' ELSE 'waiting' END,
         next_at = CASE WHEN $6::text = '' OR $9::boolean OR $7::boolean OR now() >= d.until_at THEN NULL
                        ELSE least(now() + make_interval(secs => $8::float8), greatest(d.until_at, now() + interval '1 second')) END,
         ended_at = CASE WHEN $6::text = '' OR $9::boolean OR $7::boolean OR now() >= d.until_at THEN now() END
   WHERE d.org_id = $1 AND d.webhook_id = $2::uuid AND d.id = $3::uuid AND (d.state = 'waiting' OR $9::boolean)
  RETURNING d.id, d.state, d.attempts
), hook AS MATERIALIZED (
  SELECT w.id, w.name, w.cluster_id, w.failures, w.enabled FROM webhook w, del WHERE w.org_id = $1 AND w.id = $2::uuid AND NOT $9::boolean FOR NO KEY UPDATE OF w
), off AS (
  SELECT hook.id, hook.name, hook.cluster_id,
         CASE WHEN $7::boolean THEN 'The receiver answered 410: it wants no more.'
              ELSE 'A delivery was not taken for 72 hours; the last answer: ' || left($6::text, 300) END AS reason
    FROM hook, del WHERE del.state = 'failed' AND hook.enabled
), upd AS (
  UPDATE webhook w SET failures = CASE WHEN $6::text = '' THEN 0 ELSE least(w.failures + 1, 1000000) END,
         rest_until = CASE WHEN $6::text <> '' THEN now() + make_interval(secs => least(2 ^ least(w.failures, 10), 300)) END,
         delivered_at = CASE WHEN $6::text = '' THEN now() ELSE w.delivered_at END,
         enabled = w.enabled AND NOT EXISTS (SELECT FROM off),
         version = w.version + CASE WHEN EXISTS (SELECT FROM off) THEN 1 ELSE 0 END,
         disabled_at = CASE WHEN EXISTS (SELECT FROM off) THEN now() ELSE w.disabled_at END,
         disabled_reason = coalesce((SELECT off.reason FROM off), w.disabled_reason)
    FROM hook WHERE w.org_id = $1 AND w.id = hook.id
), again AS (
  UPDATE webhook_delivery d SET next_at = now() FROM hook, del
   WHERE d.org_id = $1 AND d.webhook_id = hook.id AND d.id <> del.id AND d.state = 'waiting' AND d.next_at > now()
     AND $6::text = '' AND hook.failures >= 2
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM off WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, summary, data)
  SELECT $1, h.event_seq, 'webhook.disabled', 'warning', off.cluster_id, 'Webhook ' || off.name || ' was disabled: ' || off.reason,
         jsonb_build_object('webhook_id', off.id, 'reason', off.reason)
    FROM head h, off
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, jsonb_build_object('actor', 'muster', 'action', 'webhook.disable', 'target', off.id, 'target_name', off.name, 'outcome', 'done',
                                'before', NULL, 'after', jsonb_build_object('reason', off.reason))::text
    FROM head h, off
)
SELECT count(*) AS n FROM del;

-- Nothing is sent any more by this sender. $2 webhook $3 lease
-- name: webhook_release
UPDATE webhook w SET lease = NULL, leased_until = NULL WHERE w.org_id = $1 AND w.id = $2::uuid AND w.lease = $3::uuid;

-- Ended a month ago.
-- name: webhook_delivery_prune
-- role: loop
WITH old AS (
  DELETE FROM webhook_delivery d WHERE d.org_id = $1 AND d.id IN (
    SELECT x.id FROM webhook_delivery x WHERE x.org_id = $1 AND x.state <> 'waiting' AND x.ended_at < now() - interval '30 days' LIMIT 5000)
  RETURNING d.id
)
SELECT count(*) AS n FROM old;
