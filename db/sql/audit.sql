-- The audit log: who did what, newest first; its lines for export; what was refused; and the checks of its chain.

-- The cursor is "microseconds:seq" of the last row.
-- fragment: audit_cursor_at
CASE WHEN $8::text ~ '^[0-9]{1,16}:[0-9]{1,18}$'
     THEN timestamptz 'epoch' + split_part($8, ':', 1)::bigint * interval '1 microsecond' ELSE 'infinity' END

-- The first condition on `at` chooses partitions, the second the place.
-- $2 actor $3 actions $4 target $5 since $6 until $7 limit $8 cursor
-- name: audit_list
WITH page AS MATERIALIZED (
  SELECT a.seq, a.at, a.actor, a.action, a.target, a.body::jsonb AS b FROM audit a
   WHERE a.org_id = $1 AND ($2::text IS NULL OR a.actor = $2) AND ($3::text[] IS NULL OR a.action = ANY ($3))
     AND ($4::text IS NULL OR a.target = $4)
     AND a.at >= CASE WHEN $5::timestamptz IS NULL THEN '-infinity' ELSE $5 END
     AND a.at < CASE WHEN $6::timestamptz IS NULL THEN 'infinity' ELSE $6 END
     AND a.at <= {{audit_cursor_at}} AND (a.at, a.seq) < ({{audit_cursor_at}},
         CASE WHEN $8 ~ '^[0-9]{1,16}:[0-9]{1,18}$' THEN split_part($8, ':', 2)::bigint ELSE 9223372036854775807 END)
   ORDER BY a.at DESC, a.seq DESC LIMIT $7::int + 1
)
SELECT 200 AS status, c.seq AS version,
       (SELECT CASE WHEN count(*) > $7::int THEN (array_agg((extract(epoch FROM p.at) * 1000000)::bigint || ':' || p.seq
                                                            ORDER BY p.at DESC, p.seq DESC))[$7::int] END FROM page p) AS next,
       (SELECT concat('{"items":[', string_agg(row_to_json(t)::text, ',' ORDER BY t.at DESC, t.seq DESC), '],"as_of_seq":', c.seq, '}')
          FROM (SELECT p.seq, p.at, p.actor, p.b ->> 'kind' AS kind, p.b ->> 'credential' AS credential, p.b ->> 'issuer' AS issuer, p.b ->> 'subject' AS subject,
                       p.b ->> 'address' AS address,
                       p.b ->> 'request_id' AS request_id, p.action, p.target, p.b ->> 'target_name' AS target_name,
                       p.b ->> 'outcome' AS outcome, p.b ->> 'reason' AS reason, p.b ->> 'comment' AS comment, p.b -> 'before' AS before, p.b -> 'after' AS after
                  FROM page p ORDER BY p.at DESC, p.seq DESC LIMIT $7::int) t) AS body
  FROM audit_head c WHERE c.org_id = $1;

-- Lines in the order of the chain, about 1 MiB at most, with what is needed to check them elsewhere. $2 after (a seq) $3 lines at most
-- name: audit_export
WITH page AS MATERIALIZED (
  SELECT a.seq, a.at, a.body, a.prev_hash, a.hash FROM audit a
   WHERE a.org_id = $1 AND a.seq > $2::bigint ORDER BY a.seq LIMIT $3::int
), bounded AS (
  SELECT p.seq, p.at, p.body, encode(p.prev_hash, 'hex') AS prev_hash, encode(p.hash, 'hex') AS hash,
         sum(octet_length(p.body)) OVER (ORDER BY p.seq) - octet_length(p.body) AS before FROM page p
)
SELECT 200 AS status, (SELECT string_agg(row_to_json(t)::text || E'\n', '' ORDER BY t.seq)
          FROM (SELECT s.seq, s.at, s.body, s.prev_hash, s.hash FROM bounded s WHERE s.before < 1048576) t) AS body
  FROM audit_head c WHERE c.org_id = $1;

-- A change that was asked for and refused. The name is the one that the target has now, where it is one of this org's.
-- $2 actor $3 context $4 action $5 target $6 outcome $7 reason
-- name: audit_refused
INSERT INTO audit (org_id, body)
SELECT $1, ($3::jsonb || jsonb_build_object('actor', $2::text, 'action', $4::text, 'target', $5::uuid, 'target_name', coalesce(
         (SELECT n.name FROM node n WHERE n.org_id = $1 AND n.id = $5::uuid),
         (SELECT c.name FROM cluster c WHERE c.org_id = $1 AND c.id = $5::uuid),
         (SELECT p.name FROM project p WHERE p.org_id = $1 AND p.id = $5::uuid),
         (SELECT n.name || ' repair ' || r.no FROM repair r JOIN node n ON n.org_id = $1 AND n.id = r.node_id WHERE r.org_id = $1 AND r.id = $5::uuid),
         (SELECT n.name || ' incident ' || i.no FROM incident i JOIN node n ON n.org_id = $1 AND n.id = i.node_id
           WHERE i.org_id = $1 AND i.id = $5::uuid)),
       'outcome', $6::text, 'reason', $7::text, 'before', NULL, 'after', NULL))::text;

-- ---------------------------------------------------------------- the chain
-- An org by its name, and its head.
-- name: audit_org
-- role: loop
SELECT o.name, h.seq, h.hash FROM audit_head h JOIN org o ON o.id = h.org_id WHERE h.org_id = $1;

-- The first row that is not as it was written, and how far the chain goes: each row against its own text, the row before it and the head.
-- name: audit_check
-- role: loop
WITH head AS MATERIALIZED (
  SELECT h.seq, h.hash FROM audit_head h WHERE h.org_id = $1
), line AS (
  SELECT a.seq, a.hash, a.prev_hash,
         sha256(a.prev_hash || convert_to(a.org_id::text || ' ' || a.seq || ' ' || extract(epoch FROM a.at)::text || ' ' || a.body, 'UTF8')) AS made,
         coalesce(lag(a.seq) OVER w, 0) AS seq_before, coalesce(lag(a.hash) OVER w, sha256('muster')) AS hash_before
    FROM audit a WHERE a.org_id = $1 WINDOW w AS (ORDER BY a.seq, a.at)
), judged AS (
  SELECT r.seq, CASE WHEN r.seq <> r.seq_before + 1 THEN 'gap' WHEN r.made <> r.hash THEN 'changed'
                     WHEN r.prev_hash <> r.hash_before THEN 'unlinked' END AS why, r.seq_before FROM line r
), bad AS (
  SELECT j.seq, j.why, j.seq_before FROM judged j WHERE j.why IS NOT NULL ORDER BY j.seq LIMIT 1
), last AS (
  SELECT a.seq, a.hash FROM audit a WHERE a.org_id = $1 ORDER BY a.seq DESC LIMIT 1
)
SELECT b.seq AS bad_seq, b.why, b.seq_before, coalesce(l.seq, 0) AS last_seq, h.seq AS head_seq,
       coalesce(l.hash, sha256('muster')) = h.hash AS head_agrees
  FROM head h LEFT JOIN last l ON true LEFT JOIN bad b ON true;

-- The hash that a row has now. $2 seq
-- name: audit_hash
-- role: loop
SELECT a.hash FROM audit a WHERE a.org_id = $1 AND a.seq = $2::bigint LIMIT 1;
