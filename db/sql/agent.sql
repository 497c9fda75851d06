-- What agents ask for: joining, access tokens, facts that change rarely, commands. Reports are in ingest.sql.

-- The public half of the key that signs this cluster's commands, NULL before the first node joined; and what $3, the join token, is for.
-- name: agent_cluster_key
SELECT c.command_public_key, c.command_key_n, t.rejoin IS NOT NULL AS rejoins, {{org_suspended}} AS suspended
  FROM cluster c JOIN join_token t ON t.org_id = $1 AND t.id = $3::uuid WHERE c.org_id = $1 AND c.id = $2::uuid;

-- Joining. $2 join token, $3 host name, $4 public key, $5 SHA-256 of the access token, $6 its life in seconds, $7 id for a new
-- node, $8 command key for a cluster that has none, $9 report interval, $10 serial, $11 address, $12 request id.
-- The token's row is locked first and carries what is left, so a use is never spent twice. The same name and key again is the same
-- node and costs no use; with the token used up that works until the node's first report, because nothing proves the key here.
-- name: agent_enroll
WITH tok AS MATERIALIZED (
  SELECT t.id, t.cluster_id, t.host_name, t.cidr, t.uses_left FROM join_token t
   WHERE t.org_id = $1 AND t.id = $2::uuid AND t.revoked_at IS NULL AND t.expires_at > now() FOR UPDATE
), cur AS MATERIALIZED (
  SELECT n.id, n.key_generation, k.public_key, l.seen_at
    FROM tok JOIN node n ON n.org_id = $1 AND n.cluster_id = tok.cluster_id AND n.name = $3::text AND n.removed_at IS NULL
    LEFT JOIN node_key k ON k.org_id = $1 AND k.node_id = n.id AND k.generation = n.key_generation AND k.revoked_at IS NULL
    LEFT JOIN node_latest l ON l.org_id = $1 AND l.node_id = n.id
     FOR UPDATE OF n
), verdict AS MATERIALIZED (
  SELECT tok.id, tok.cluster_id, cur.id AS node_id,
         CASE WHEN tok.cidr IS NOT NULL AND NOT $11::text::inet <<= tok.cidr THEN 'elsewhere'
              WHEN tok.host_name IS NOT NULL AND lower(tok.host_name) <> lower($3::text) THEN 'bound'
              WHEN cur.public_key = $4::bytea AND (tok.uses_left > 0 OR cur.seen_at IS NULL) THEN 'same'
              WHEN tok.uses_left = 0 THEN 'used_up'
              WHEN cur.public_key IS NOT NULL THEN 'taken'
              WHEN cur.id IS NOT NULL THEN 'take_over'
              ELSE 'new' END AS word
    FROM tok LEFT JOIN cur ON true
), used AS (
  UPDATE join_token t SET uses_left = t.uses_left - 1 FROM verdict v
   WHERE t.org_id = $1 AND t.id = v.id AND v.word IN ('new', 'take_over')
), cl AS (
  UPDATE cluster c SET next_slot = c.next_slot + CASE WHEN v.word = 'new' THEN 1 ELSE 0 END,
         command_public_key = coalesce(c.command_public_key, $8::bytea)
    FROM verdict v WHERE c.org_id = $1 AND c.id = v.cluster_id AND v.word IN ('new', 'take_over', 'same')
  RETURNING c.id, c.next_slot - 1 AS slot, c.command_public_key, c.command_key_n
), made AS (
  INSERT INTO node (org_id, id, cluster_id, name, slot, host_serial, key_generation, command_key_n, interval_seconds, joined_at)
  SELECT $1, $7::uuid, cl.id, $3::text, cl.slot, coalesce($10::text, ''), 1, cl.command_key_n, $9::integer, now() FROM cl JOIN verdict v ON v.word = 'new'
  RETURNING id, key_generation
), took AS (
  UPDATE node n SET key_generation = n.key_generation + 1, joined_at = now(), interval_seconds = $9::integer, key_stopped_at = NULL,
         command_key_n = cl.command_key_n,
         host_serial = coalesce($10::text, n.host_serial)
    FROM verdict v JOIN cl ON cl.id = v.cluster_id WHERE n.org_id = $1 AND n.id = v.node_id AND v.word = 'take_over'
  RETURNING n.id, n.key_generation
), nd AS MATERIALIZED (
  SELECT m.id, m.key_generation, true AS joined FROM made m
  UNION ALL SELECT t.id, t.key_generation, true FROM took t
  UNION ALL SELECT cur.id, cur.key_generation, false FROM cur JOIN verdict v ON v.word = 'same'
), key AS (
  INSERT INTO node_key (org_id, node_id, generation, public_key) SELECT $1, nd.id, nd.key_generation, $4::bytea FROM nd WHERE nd.joined
), marks AS (
  DELETE FROM node_stream s USING took WHERE s.org_id = $1 AND s.node_id = took.id
), latest AS (
  INSERT INTO node_latest AS l (org_id, node_id) SELECT $1, nd.id FROM nd WHERE nd.joined
  ON CONFLICT (org_id, node_id) DO UPDATE SET seq = 0, old_boots = '{}', strikes = 0
), token AS (
  INSERT INTO agent_token (org_id, node_id, token_hash, generation, expires_at)
  SELECT $1, nd.id, $5::bytea, nd.key_generation, now() + make_interval(secs => $6::integer) FROM nd
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM nd WHERE h.org_id = $1 AND nd.joined RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, node_id, summary, data)
  SELECT $1, head.event_seq, 'node.joined', cl.id, nd.id, $3::text || ' joined.', jsonb_build_object('generation', nd.key_generation)
    FROM head, nd, cl
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', 'join token', 'credential', v.id, 'address', $11::text, 'request_id', $12::text, 'action', 'node.join',
                               'target', coalesce(nd.id, v.node_id), 'target_name', $3::text,
                               'outcome', CASE WHEN nd.joined THEN 'done' ELSE 'denied' END,
                               'after', CASE WHEN nd.joined THEN json_build_object('cluster_id', v.cluster_id, 'generation', nd.key_generation) END)::text
    FROM verdict v LEFT JOIN (nd CROSS JOIN head) ON true WHERE nd.joined OR v.word IN ('bound', 'elsewhere', 'taken')
)
SELECT CASE WHEN v.word IN ('new', 'take_over', 'same') THEN 201 WHEN v.word IN ('bound', 'elsewhere') THEN 403 WHEN v.word = 'taken' THEN 409
            ELSE 401 END AS status,
       v.word, nd.id AS node_id, v.cluster_id, nd.key_generation AS generation, cl.command_public_key, cl.command_key_n, nd.joined
  FROM verdict v LEFT JOIN nd ON true LEFT JOIN cl ON true;

-- A further access token for a live key. $2 node, $3 generation, $4 hash, $5 life in seconds. No row: the key is gone.
-- name: agent_token_issue
INSERT INTO agent_token (org_id, node_id, token_hash, generation, expires_at)
SELECT k.org_id, k.node_id, $4::bytea, k.generation, now() + make_interval(secs => $5::integer)
  FROM node_key k WHERE k.org_id = $1 AND k.node_id = $2::uuid AND k.generation = $3::integer AND k.revoked_at IS NULL
RETURNING expires_at;

-- The rare parts of a report, in one commit after its batch. $2 node; inventory $3..$13, NULL = not said; $14 devices, $15
-- collectors and $16 results as JSON arrays, NULL = absent; $17..$19 the node's place as its own configuration says it, which fills
-- what people left empty. A command's result counts once: accepted, then done, refused or failed;
-- it also counts after the command expired or was withdrawn, because then it is what happened.
-- name: agent_facts
WITH cur AS MATERIALIZED (
  SELECT n.cluster_id, n.name, n.agent_version, n.driver_version, n.kernel, n.os_image, n.gpu_type, n.host_serial, n.booted_at
    FROM node n WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL FOR NO KEY UPDATE
), upd AS (
  UPDATE node n
     SET agent_version = coalesce($3::text, n.agent_version), kernel = coalesce($4::text, n.kernel), os_image = coalesce($5::text, n.os_image),
         driver_version = coalesce($6::text, n.driver_version), gpu_type = coalesce($7::text, n.gpu_type),
         host_serial = coalesce($8::text, n.host_serial), address = coalesce($9::text, n.address), cpus = coalesce($10::integer, n.cpus),
         memory_mib = coalesce($11::bigint, n.memory_mib), booted_at = coalesce($12::timestamptz, n.booted_at),
         driver_changed_at = CASE WHEN n.driver_version <> '' AND $6::text <> n.driver_version THEN now() ELSE n.driver_changed_at END,
         rack = coalesce(nullif(n.rack, ''), left($17::text, 63), ''), leaf = coalesce(nullif(n.leaf, ''), left($18::text, 63), ''),
         partition = coalesce(nullif(n.partition, ''), left($19::text, 63), '')
    FROM cur WHERE n.org_id = $1 AND n.id = $2::uuid AND $13::boolean
), dev AS MATERIALIZED (
  SELECT d.id, d.type, d.serial, d.index, d.pci, d.model, d.firmware, d.memory_mib
    FROM cur, jsonb_to_recordset($14::jsonb) AS d(id uuid, type text, serial text, index integer, pci text, model text, firmware text,
                                                  memory_mib integer)
), devices AS (
  INSERT INTO device AS o (org_id, id, node_id, type, serial, index, pci, model, firmware, memory_mib)
  SELECT $1, d.id, $2::uuid, d.type, d.serial, d.index, d.pci, d.model, d.firmware, d.memory_mib FROM dev d ORDER BY d.type, d.serial
  ON CONFLICT (org_id, node_id, type, serial) DO UPDATE
    SET index = excluded.index, pci = excluded.pci, model = excluded.model, firmware = excluded.firmware,
        memory_mib = excluded.memory_mib, present = true, last_seen_at = now()
), gone AS (
  UPDATE device o SET present = false
    FROM cur WHERE o.org_id = $1 AND o.node_id = $2::uuid AND o.present AND $14::jsonb IS NOT NULL
     AND NOT EXISTS (SELECT FROM dev d WHERE d.type = o.type AND d.serial = o.serial)
), col AS MATERIALIZED (
  SELECT c.name, c.state, c.reason, o.state AS was
    FROM cur CROSS JOIN jsonb_to_recordset($15::jsonb) AS c(name text, state text, reason text)
    LEFT JOIN collector o ON o.org_id = $1 AND o.node_id = $2::uuid AND o.name = c.name
), collectors AS (
  INSERT INTO collector AS o (org_id, node_id, name, state, reason) SELECT $1, $2::uuid, c.name, c.state, c.reason FROM col c ORDER BY c.name
  ON CONFLICT (org_id, node_id, name) DO UPDATE
    SET state = excluded.state, reason = excluded.reason, since = CASE WHEN o.state = excluded.state THEN o.since ELSE now() END
    WHERE o.state <> excluded.state OR o.reason <> excluded.reason
), res AS MATERIALIZED (
  SELECT r.command_id, r.state, r.detail
    FROM cur, jsonb_to_recordset($16::jsonb) AS r(command_id uuid, state text, detail text)
), results AS (
  UPDATE command c SET state = r.state, result = r.detail, ended_at = CASE WHEN r.state = 'accepted' THEN c.ended_at ELSE now() END
    FROM res r WHERE c.org_id = $1 AND c.id = r.command_id AND c.node_id = $2::uuid
     AND c.executor = 'agent' AND c.state NOT IN ('done', 'refused', 'failed') AND c.state <> r.state
  RETURNING c.id
), told AS MATERIALIZED (
  SELECT 'node.updated' AS type, 'info' AS severity, cur.name || ': ' || string_agg(f.label || ' is now ' || f.now, ', ' ORDER BY f.label) || '.' AS summary,
         jsonb_object_agg(f.label, jsonb_build_object('before', f.was, 'after', f.now)) AS data
    FROM cur, LATERAL (VALUES ('agent', cur.agent_version, $3::text), ('driver', cur.driver_version, $6::text), ('kernel', cur.kernel, $4::text),
                              ('os image', cur.os_image, $5::text), ('serial', cur.host_serial, $8::text)) AS f(label, was, now)
   WHERE f.was <> '' AND f.now IS NOT NULL AND f.now <> '' AND f.was <> f.now AND $13::boolean
   GROUP BY cur.name
  UNION ALL
  SELECT 'collector.changed', CASE WHEN col.state = 'unknown' THEN 'warning' ELSE 'info' END,
         cur.name || ': collector ' || col.name || CASE col.state WHEN 'ok' THEN ' works again.' WHEN 'absent' THEN ' has nothing to read.'
                                                                 ELSE ' cannot be read.' END,
         jsonb_build_object('name', col.name, 'state', col.state, 'before', col.was, 'reason', col.reason)
    FROM cur, col WHERE col.state <> coalesce(col.was, CASE WHEN col.state = 'unknown' THEN '' ELSE col.state END)
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + t.n FROM (SELECT count(*) AS n FROM told) t WHERE h.org_id = $1 AND t.n > 0
  RETURNING h.event_seq - t.n AS base
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, actor, summary, data)
  SELECT $1, head.base + row_number() OVER (ORDER BY told.type, told.summary), told.type, told.severity, cur.cluster_id, $2::uuid, 'agent',
         told.summary, told.data
    FROM told, cur, head
)
SELECT CASE WHEN EXISTS (SELECT FROM cur) THEN 200 ELSE 404 END AS status, (SELECT count(*) FROM results) AS results,
       (SELECT count(*) FROM told) AS events;

-- What a node's report takes along. A command stays `sent` and goes out with each report until there is a result: the answer may get lost,
-- and the agent acts once on an id however often it comes. It does not go out, nor once more, while something runs on the node. A demo org's commands are for simulated nodes only. $3 the number of the
-- newest command key that the agent trusts, NULL = it does not say. One row at least: the chain from that key on, where it is not the
-- newest, and then a command a row. `knows` = it has just said that it trusts the newest. $4 the version of the settings that it runs, NULL
-- = it takes none; $5 a version that it could not use. `settings` = the document that it should run instead.
-- name: agent_commands
WITH runs AS (
  INSERT INTO node_settings AS s (org_id, node_id, running, refused) SELECT $1, $2::uuid, $4, coalesce($5, '') WHERE $4::text IS NOT NULL
  ON CONFLICT (org_id, node_id) DO UPDATE SET running = excluded.running, refused = excluded.refused, running_at = now()
   WHERE s.running <> excluded.running OR s.refused <> excluded.refused
), wants AS MATERIALIZED (
  SELECT s.document FROM node_settings s
   WHERE s.org_id = $1 AND s.node_id = $2::uuid AND s.wanted <> '' AND s.wanted <> $4::text AND s.wanted <> coalesce($5::text, '')
), nd AS MATERIALIZED (
  SELECT n.id, n.cluster_id, n.command_key_n AS was, least(coalesce($3::integer, n.command_key_n), c.command_key_n) AS key_n,
         c.command_key_n AS newest, c.command_public_key
    FROM node n JOIN cluster c ON c.org_id = $1 AND c.id = n.cluster_id WHERE n.org_id = $1 AND n.id = $2::uuid
), told AS (
  UPDATE node n SET command_key_n = nd.key_n FROM nd WHERE n.org_id = $1 AND n.id = nd.id AND nd.key_n <> nd.was
), knows AS (
  DELETE FROM command_key_due d USING nd WHERE d.org_id = $1 AND d.node_id = nd.id AND nd.key_n = nd.newest AND $3 IS NOT NULL RETURNING d.node_id
), due AS MATERIALIZED (
  SELECT c.id, c.repair_id, c.epoch_generation, c.epoch_n, c.action, c.args, c.boot_id, c.state
    FROM command c JOIN org o ON o.id = c.org_id CROSS JOIN installation whole LEFT JOIN repair r ON r.org_id = $1 AND r.id = c.repair_id
   WHERE c.org_id = $1 AND c.node_id = $2::uuid AND c.state IN ('ready', 'sent') AND c.deadline_at > now() AND {{repair_stop}} IS NULL AND {{repair_idle}}
     AND c.executor = 'agent' AND (NOT o.demo OR c.args -> 'simulated' = 'true'::jsonb)
     AND whole.repairs_stopped_at IS NULL
   -- a stop of the whole installation is acknowledged after this, or seen by it
   ORDER BY c.epoch_generation, c.epoch_n LIMIT 4 FOR NO KEY UPDATE OF c FOR SHARE OF whole
), sent AS (
  UPDATE command c SET state = 'sent', sent_at = now() FROM due WHERE c.org_id = $1 AND c.id = due.id AND due.state = 'ready'
)
SELECT d.id, d.epoch_generation, d.epoch_n, d.action, d.args::text AS args, d.boot_id, r.no AS repair_no, nd.key_n,
       CASE WHEN nd.key_n = nd.newest THEN nd.command_public_key
            ELSE (SELECT k.public_key FROM command_key k WHERE k.org_id = $1 AND k.cluster_id = nd.cluster_id AND k.n = nd.key_n)
             END AS command_public_key,
       CASE WHEN nd.key_n < nd.newest THEN (
         SELECT string_agg(json_build_object('n', k.n, 'public_key', translate(encode(k.public_key, 'base64'), '+/=' || chr(10), '-_'),
                                             'signature', translate(encode(k.signature, 'base64'), '+/=' || chr(10), '-_'))::text, ',' ORDER BY k.n)
           FROM command_key k WHERE k.org_id = $1 AND k.cluster_id = nd.cluster_id AND k.n > nd.key_n AND k.n <= nd.key_n + 8) END AS chain,
       EXISTS (SELECT FROM knows) AS knows, (SELECT w.document FROM wants w) AS settings
  FROM nd LEFT JOIN due d ON true LEFT JOIN repair r ON r.org_id = $1 AND r.id = d.repair_id
 ORDER BY d.epoch_generation, d.epoch_n;

-- The nodes that have commands to fetch, a key to learn or other settings to run, of all orgs: bounds what the table in memory holds.
-- name: agent_commands_waiting
-- role: loop
-- scope: global
SELECT c.node_id FROM command c WHERE c.state IN ('ready', 'sent') AND c.deadline_at > now() AND c.executor = 'agent'
UNION SELECT d.node_id FROM command_key_due d
UNION SELECT s.node_id FROM node_settings s WHERE s.wanted <> s.running AND s.wanted <> s.refused LIMIT 100000;

-- After a start with another report interval: silence is counted in intervals of the node.
-- name: agent_interval_set
-- role: loop
UPDATE node SET interval_seconds = $2::integer WHERE org_id = $1 AND interval_seconds <> $2::integer AND removed_at IS NULL;
