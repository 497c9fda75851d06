-- Machines that come back without what they kept: known by their hardware, let in by a person or by the token itself.

-- fragment: rejoin_fields
r.id, r.cluster_id, r.node_id, n.name AS node_name, r.state, r.serial, r.serial_same, r.gpus_same, r.gpus_known, r.alive, r.address,
translate(encode(r.public_key, 'base64'), '+/=', '-_') AS public_key, r.decided_by, r.decided_at, r.created_at

-- A machine asks. $2 token $3 host name $4 public key $5 hash of an access token $6 its life in seconds $7 id of a request $8 serial
-- $9 hardware as the machine says, JSON with `gpus`, their serials $10 address $11 request id. word: same (its key is the node's, here is a token), auto (the request is
-- to be approved at once), ask, or why not.
-- name: agent_rejoin
WITH tok AS MATERIALIZED (
  SELECT t.id, t.cluster_id, t.rejoin, t.cidr IS NOT NULL AND NOT $10::text::inet <<= t.cidr AS elsewhere,
         t.host_name IS NOT NULL AND lower(t.host_name) <> lower($3::text) AS bound
    FROM join_token t WHERE t.org_id = $1 AND t.id = $2::uuid AND t.rejoin IS NOT NULL AND t.revoked_at IS NULL AND t.expires_at > now()
), cur AS MATERIALIZED (
  SELECT n.id, n.name, n.key_generation, n.host_serial, n.key_stopped_at, k.public_key,
         coalesce(l.seen_at > now() - make_interval(secs => 3 * n.interval_seconds), false) AS alive,
         n.host_serial <> '' AND n.host_serial = coalesce($8::text, '') AS serial_same,
         (SELECT count(*) FROM device d WHERE d.org_id = $1 AND d.node_id = n.id AND d.type = 'gpu' AND d.present) AS gpus_known,
         (SELECT count(*) FROM device d WHERE d.org_id = $1 AND d.node_id = n.id AND d.type = 'gpu' AND d.present
             AND jsonb_exists($9::jsonb -> 'gpus', d.serial)) AS gpus_same
    FROM tok JOIN node n ON n.org_id = $1 AND n.cluster_id = tok.cluster_id AND n.name = $3::text AND n.removed_at IS NULL AND n.key_generation > 0
    LEFT JOIN node_key k ON k.org_id = $1 AND k.node_id = n.id AND k.generation = n.key_generation AND k.revoked_at IS NULL
    LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id FOR UPDATE OF n
), spare_of AS MATERIALIZED (
  -- another machine is on its way to take the node over
  SELECT s.serial FROM cur JOIN repair r ON r.org_id = $1 AND r.node_id = cur.id AND r.action = 'failover' AND r.ended_at IS NULL
    JOIN command k ON k.org_id = $1 AND k.id = r.command_id AND k.state IN ('sent', 'accepted')
    JOIN spare s ON s.org_id = $1 AND s.repair_id = r.id AND s.state = 'claimed'
), old AS MATERIALIZED (
  SELECT r.id, r.state FROM rejoin r JOIN cur ON cur.id = r.node_id WHERE r.org_id = $1 AND r.public_key = $4::bytea ORDER BY r.id DESC LIMIT 1
), verdict AS MATERIALIZED (
  SELECT CASE WHEN tok.id IS NULL THEN 'unknown_token' WHEN tok.elsewhere THEN 'elsewhere' WHEN tok.bound THEN 'bound'
              WHEN cur.id IS NULL THEN 'unknown_node' WHEN cur.public_key = $4::bytea THEN 'same' WHEN old.state = 'denied' THEN 'denied'
              WHEN NOT cur.serial_same AND cur.gpus_same * 2 <= cur.gpus_known AND spare_of.serial IS NULL THEN 'other_machine'
              WHEN tok.rejoin = 'auto' AND spare_of.serial <> '' AND spare_of.serial = $8::text AND NOT cur.alive AND cur.key_stopped_at IS NULL THEN 'auto'
              WHEN tok.rejoin = 'auto' AND cur.serial_same AND (cur.gpus_known = 0 OR cur.gpus_same * 2 > cur.gpus_known)
                   AND NOT cur.alive AND cur.key_stopped_at IS NULL THEN 'auto'
              ELSE 'ask' END AS word
    FROM (SELECT 1) one LEFT JOIN tok ON true LEFT JOIN cur ON true LEFT JOIN old ON true LEFT JOIN spare_of ON true
), replaced AS (
  UPDATE rejoin r SET state = 'replaced', decided_at = now()
    FROM cur, verdict v WHERE r.org_id = $1 AND r.node_id = cur.id AND r.state = 'pending' AND r.public_key <> $4::bytea AND v.word IN ('ask', 'auto')
), made AS (
  INSERT INTO rejoin (org_id, id, cluster_id, node_id, token_id, public_key, serial, address, serial_same, gpus_same, gpus_known, alive)
  SELECT $1, $7::uuid, tok.cluster_id, cur.id, tok.id, $4::bytea, coalesce(left($8::text, 255), ''), $10::text, cur.serial_same, cur.gpus_same,
         cur.gpus_known, cur.alive
    FROM tok, cur, verdict v WHERE v.word IN ('ask', 'auto') AND NOT EXISTS (SELECT FROM old WHERE old.state = 'pending') RETURNING id
), token AS (
  INSERT INTO agent_token (org_id, node_id, token_hash, generation, expires_at)
  SELECT $1, cur.id, $5::bytea, cur.key_generation, now() + make_interval(secs => $6::integer) FROM cur, verdict v WHERE v.word = 'same'
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, summary, data)
  SELECT $1, head.event_seq, 'node.rejoin_requested', 'warning', tok.cluster_id, cur.id,
         'A machine that says it is ' || cur.name || ' asks to come back with a new key: '
         || CASE WHEN cur.serial_same THEN 'the host''s serial is the same' ELSE 'the host''s serial is another' END || ', '
         || cur.gpus_same || ' of ' || cur.gpus_known || ' GPUs are the same'
         || CASE WHEN cur.alive THEN '; the node itself still reports' ELSE '' END || '.',
         jsonb_build_object('rejoin_id', made.id) FROM head, tok, cur, made
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', 'join token', 'credential', tok.id, 'address', $10::text, 'request_id', $11::text, 'action', 'node.rejoin',
                               'target', cur.id, 'target_name', $3::text, 'outcome', CASE WHEN made.id IS NULL THEN 'denied' ELSE 'done' END,
                               'before', NULL, 'after', json_build_object('rejoin_id', made.id, 'verdict', v.word))::text
    FROM verdict v JOIN tok ON true LEFT JOIN cur ON true LEFT JOIN (made CROSS JOIN head) ON true
   WHERE made.id IS NOT NULL OR v.word IN ('elsewhere', 'bound', 'unknown_node', 'other_machine')
)
SELECT v.word, coalesce(made.id, old.id) AS rejoin_id, cur.id AS node_id, cur.key_generation AS generation, c.command_public_key, c.command_key_n,
       false AS joined
  FROM verdict v LEFT JOIN tok ON true LEFT JOIN cur ON true LEFT JOIN old ON true LEFT JOIN made ON true
  LEFT JOIN cluster c ON c.org_id = $1 AND c.id = tok.cluster_id;

-- $2 cluster $3 limit $4 cursor
-- name: rejoin_list
WITH page AS MATERIALIZED (
  SELECT {{rejoin_fields}} FROM rejoin r JOIN node n ON n.org_id = $1 AND n.id = r.node_id
   WHERE r.org_id = $1 AND r.cluster_id = $2::uuid
     AND ($4::text IS NULL OR r.id < CASE WHEN $4 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $4::uuid END)
   ORDER BY r.id DESC LIMIT $3::int + 1
)
SELECT CASE WHEN EXISTS (SELECT FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid) THEN 200 ELSE 404 END AS status,
       h.event_seq + h.rollup_version AS version,
       (SELECT CASE WHEN count(*) > $3::int THEN (array_agg(p.id ORDER BY p.id DESC))[$3::int]::text END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.id DESC), '],"as_of_seq":', h.event_seq, '}')
          FROM (SELECT x.* FROM page x ORDER BY x.id DESC LIMIT $3::int) t) AS body
  FROM org_head h WHERE h.org_id = $1;

-- name: rejoin_get
SELECT CASE WHEN t.id IS NULL THEN 404 ELSE 200 END AS status, row_to_json(t)::text AS body
  FROM (SELECT 1) one
  LEFT JOIN (SELECT {{rejoin_fields}} FROM rejoin r JOIN node n ON n.org_id = $1 AND n.id = r.node_id WHERE r.org_id = $1 AND r.id = $2::uuid) t ON true;

-- The machine's key becomes the node's, as a new generation; the former one ends. $2 request $3 key $4 fingerprint $5 actor $6 context
-- name: rejoin_approve
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT r.id, r.cluster_id, r.node_id, r.public_key, r.state, n.name, n.key_generation + 1 AS generation
    FROM rejoin r JOIN node n ON n.org_id = $1 AND n.id = r.node_id AND n.removed_at IS NULL
   WHERE r.org_id = $1 AND r.id = $2::uuid AND NOT EXISTS (SELECT FROM seen) FOR UPDATE OF r, n
), act AS (
  UPDATE rejoin r SET state = 'approved', decided_by = $5, decided_at = now()
    FROM cur WHERE r.org_id = $1 AND r.id = cur.id AND cur.state = 'pending' RETURNING r.id, r.cluster_id, r.node_id, r.state, r.serial, r.serial_same, r.gpus_same, r.gpus_known, r.alive, r.address,
    r.public_key, r.decided_by, r.decided_at, r.created_at
), former AS (
  UPDATE node_key k SET revoked_at = now() FROM act WHERE k.org_id = $1 AND k.node_id = act.node_id AND k.revoked_at IS NULL
), tokens AS (
  DELETE FROM agent_token t USING act WHERE t.org_id = $1 AND t.node_id = act.node_id
), marks AS (
  DELETE FROM node_stream s USING act WHERE s.org_id = $1 AND s.node_id = act.node_id
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), key AS (
  INSERT INTO node_key (org_id, node_id, generation, public_key)
  SELECT $1, cur.node_id, cur.generation, cur.public_key FROM cur, act
), nd AS (
  UPDATE node n SET key_generation = cur.generation, key_stopped_at = NULL, joined_at = now(), command_key_n = c.command_key_n,
         version = n.version + 1, updated_at = now()
    FROM cur, act, cluster c WHERE n.org_id = $1 AND n.id = cur.node_id AND c.org_id = $1 AND c.id = cur.cluster_id
), latest AS (
  UPDATE node_latest l SET seq = 0, old_boots = '{}', strikes = 0 FROM act WHERE l.org_id = $1 AND l.node_id = act.node_id
), shown AS MATERIALIZED (
  SELECT {{rejoin_fields}} FROM act r JOIN cur n ON n.node_id = r.node_id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, head.event_seq, 'node.rejoined', cur.cluster_id, cur.node_id, $5, cur.name || ' came back with a new key.',
         jsonb_build_object('rejoin_id', cur.id, 'generation', cur.generation) FROM head, cur
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(s)::text FROM head, shown s WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'rejoin.approve', 'target', s.node_id, 'target_name', s.node_name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(s)))::text FROM head, shown s
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200
            WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem, c.state,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN shown a ON true LEFT JOIN cur c ON true;

-- $2 request $3 key $4 fingerprint $5 actor $6 context
-- name: rejoin_deny
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT r.id, r.cluster_id, r.node_id, r.state, n.name FROM rejoin r JOIN node n ON n.org_id = $1 AND n.id = r.node_id
   WHERE r.org_id = $1 AND r.id = $2::uuid AND NOT EXISTS (SELECT FROM seen) FOR UPDATE OF r
), act AS (
  UPDATE rejoin r SET state = 'denied', decided_by = $5, decided_at = now()
    FROM cur WHERE r.org_id = $1 AND r.id = cur.id AND cur.state = 'pending' RETURNING r.id, r.cluster_id, r.node_id, r.state, r.serial, r.serial_same, r.gpus_same, r.gpus_known, r.alive, r.address,
    r.public_key, r.decided_by, r.decided_at, r.created_at
), shown AS MATERIALIZED (
  SELECT {{rejoin_fields}} FROM act r JOIN cur n ON n.node_id = r.node_id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, actor, summary, data)
  SELECT $1, head.event_seq, 'node.rejoin_denied', cur.cluster_id, cur.node_id, $5, 'A machine that says it is ' || cur.name || ' was not let in.',
         jsonb_build_object('rejoin_id', cur.id) FROM head, cur
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(s)::text FROM head, shown s WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'rejoin.deny', 'target', s.node_id, 'target_name', s.node_name,
                                              'outcome', 'done', 'before', NULL, 'after', row_to_json(s)))::text FROM head, shown s
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.id IS NOT NULL THEN 200
            WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem, c.state,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN shown a ON true LEFT JOIN cur c ON true;
