-- The keys that sign a cluster's commands: a chain, each signed by the one before.

-- Of the clusters of an org, or of those with this name or id ($2, NULL = all): every key, newest first, and how many agents wait.
-- name: command_key_list
-- role: loop
SELECT c.id, c.name, o.name AS org, c.command_key_n AS newest, c.command_public_key, k.n, coalesce(k.public_key, c.command_public_key) AS public_key,
       coalesce(k.created_at, c.created_at) AS created_at, k.retired_at,
       (SELECT count(*) FROM command_key_due d JOIN node n ON n.org_id = d.org_id AND n.id = d.node_id
         WHERE d.org_id = $1 AND n.cluster_id = c.id AND n.removed_at IS NULL) AS waiting
  FROM cluster c JOIN org o ON o.id = c.org_id
  LEFT JOIN command_key k ON k.org_id = $1 AND k.cluster_id = c.id
 WHERE c.org_id = $1 AND c.command_public_key IS NOT NULL AND ($2::text IS NULL OR c.name = $2 OR c.id::text = $2)
 ORDER BY c.name, k.n DESC;

-- A successor becomes the newest key. $2 cluster $3 number of the present one $4 successor $5 its signature $6 audit row. No row: somebody
-- else was first, or a rotation is under way.
-- name: command_key_add
-- role: loop
WITH cur AS MATERIALIZED (
  SELECT c.id, c.name, c.command_public_key, c.created_at FROM cluster c
   WHERE c.org_id = $1 AND c.id = $2::uuid AND c.command_key_n = $3::integer
     AND NOT EXISTS (SELECT FROM command_key k WHERE k.org_id = $1 AND k.cluster_id = c.id AND k.n < c.command_key_n AND k.retired_at IS NULL)
     FOR NO KEY UPDATE
), first AS (
  INSERT INTO command_key (org_id, cluster_id, n, public_key, created_at)
  SELECT $1, cur.id, 1, cur.command_public_key, cur.created_at FROM cur WHERE $3::integer = 1 ON CONFLICT DO NOTHING
), made AS (
  INSERT INTO command_key (org_id, cluster_id, n, public_key, signature)
  SELECT $1, cur.id, $3::integer + 1, $4::bytea, $5::bytea FROM cur RETURNING n
), upd AS (
  UPDATE cluster c SET command_public_key = $4::bytea, command_key_n = made.n, version = c.version + 1, updated_at = now()
    FROM made WHERE c.org_id = $1 AND c.id = $2::uuid
), due AS (
  INSERT INTO command_key_due (org_id, node_id)
  SELECT $1, n.id FROM cur JOIN node n ON n.org_id = $1 AND n.cluster_id = cur.id AND n.removed_at IS NULL AND n.joined_at IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING node_id
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1, command_seq = h.command_seq + 1 FROM made WHERE h.org_id = $1 RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, summary, data)
  SELECT $1, head.event_seq, 'cluster.key_rotated', cur.id, 'The key that signs commands of ' || cur.name || ' has a successor',
         jsonb_build_object('key', made.n) FROM head, cur, made
), au AS (
  INSERT INTO audit (org_id, body) SELECT $1, $6 FROM made
)
SELECT made.n, (SELECT count(*) FROM due) AS waiting FROM made;

-- Ends the keys before the newest, once no agent needs them, or at once ($3). $2 cluster. A row for each key that was ended.
-- name: command_key_retire
-- role: app, loop
WITH cur AS MATERIALIZED (
  SELECT c.id, c.name, c.command_key_n FROM cluster c
   WHERE c.org_id = $1 AND c.id = $2::uuid
     AND ($3::boolean OR NOT EXISTS (
       SELECT FROM command_key_due d JOIN node n ON n.org_id = d.org_id AND n.id = d.node_id
        WHERE d.org_id = $1 AND n.cluster_id = c.id AND n.removed_at IS NULL)) FOR NO KEY UPDATE
), act AS (
  UPDATE command_key k SET retired_at = now()
    FROM cur WHERE k.org_id = $1 AND k.cluster_id = cur.id AND k.n < cur.command_key_n AND k.retired_at IS NULL RETURNING k.n
), head AS (
  UPDATE org_head h SET event_seq = h.event_seq + 1 WHERE h.org_id = $1 AND EXISTS (SELECT FROM act) RETURNING h.event_seq
), ev AS (
  INSERT INTO event (org_id, seq, type, cluster_id, summary, data)
  SELECT $1, head.event_seq, 'cluster.key_retired', cur.id, 'The former key that signed commands of ' || cur.name || ' is retired',
         jsonb_build_object('key', (SELECT max(act.n) FROM act)) FROM head, cur
), au AS (
  INSERT INTO audit (org_id, body)
  SELECT $1, json_build_object('actor', CASE WHEN $3::boolean THEN 'musterd key rotate' ELSE 'muster' END, 'credential', NULL, 'action', 'key.retire',
                               'target', cur.id, 'target_name', cur.name, 'outcome', 'done', 'before', NULL,
                               'after', json_build_object('key', (SELECT max(act.n) FROM act)))::text FROM head, cur
)
SELECT act.n FROM act;
