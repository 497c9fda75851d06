-- A node's credentials: taking them away.

-- The present key and all access tokens end, on every replica within seconds. With a join token the node may come back as a new
-- generation. $2 node $3 key $4 fingerprint $5 actor $6 context $7 reason
-- name: node_revoke_key
WITH seen AS (
  SELECT i.status, i.body, i.fingerprint FROM idempotency i WHERE i.org_id = $1 AND i.key = $3
), cur AS MATERIALIZED (
  SELECT n.id, n.name, n.cluster_id, n.key_generation FROM node n
   WHERE n.org_id = $1 AND n.id = $2::uuid AND n.removed_at IS NULL AND NOT EXISTS (SELECT FROM seen) FOR NO KEY UPDATE
), key AS (
  UPDATE node_key k SET revoked_at = now() FROM cur WHERE k.org_id = $1 AND k.node_id = cur.id AND k.revoked_at IS NULL
  RETURNING k.generation, k.revoked_at
), act AS MATERIALIZED (
  SELECT cur.id AS node_id, cur.name, max(key.generation) AS generation, max(key.revoked_at) AS revoked_at
    FROM cur, key GROUP BY cur.id, cur.name
), tokens AS (
  DELETE FROM agent_token t USING act WHERE t.org_id = $1 AND t.node_id = act.node_id
), epoch AS (
  UPDATE installation i SET auth_epoch = i.auth_epoch + 1 FROM act WHERE i.one
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 FROM act WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, severity, cluster_id, node_id, actor, summary, data)
  SELECT $1, h.event_seq, 'node.key_revoked', 'warning', cur.cluster_id, cur.id, $5,
         'The key of ' || cur.name || ' was revoked' || coalesce(': ' || $7, ''), jsonb_build_object('generation', a.generation)
    FROM head h, act a, cur
), keep AS (
  INSERT INTO idempotency (org_id, key, fingerprint, status, body)
  SELECT $1, $3, $4::bytea, 200, row_to_json(a)::text FROM head h, act a WHERE $3 IS NOT NULL
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, ($6::jsonb || jsonb_build_object('actor', $5::text, 'action', 'node.revoke_key', 'target', a.node_id, 'target_name', a.name,
                                              'outcome', 'done', 'before', NULL,
                                              'after', jsonb_build_object('generation', a.generation, 'reason', coalesce($7, ''))))::text
    FROM head h, act a
)
SELECT CASE WHEN s.fingerprint <> $4 THEN 422 WHEN s.status IS NOT NULL THEN s.status WHEN a.node_id IS NOT NULL THEN 200
            WHEN c.id IS NOT NULL THEN 409 ELSE 404 END AS status,
       CASE WHEN s.fingerprint <> $4 THEN 'idempotency_key_reused' END AS problem,
       CASE WHEN s.status IS NULL AND a.node_id IS NULL AND c.id IS NOT NULL THEN 'This node has no key that could be revoked.' END AS detail,
       s.status IS NOT NULL AS replayed, coalesce(row_to_json(a)::text, s.body) AS body
  FROM (SELECT 1) one LEFT JOIN seen s ON true LEFT JOIN act a ON true LEFT JOIN cur c ON true;
