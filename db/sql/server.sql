-- What the server itself asks: what moved, whether it is ready, streams of events, sessions in use.

-- One row an org, and one row without an org where there is none yet: the epoch is on each.
-- name: follow_heads
-- role: loop
-- scope: global
SELECT h.org_id, h.event_seq, h.rollup_version, h.command_seq, i.auth_epoch
  FROM installation i LEFT JOIN org_head h ON true;

-- name: session_touch
UPDATE session SET seen_at = now() WHERE org_id = $1 AND id = $2::uuid AND seen_at < now() - interval '5 minutes';

-- How many connections the server may have, and whether rows of the coming days have a partition.
-- name: server_limits
-- role: loop
-- scope: global
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS connections;

-- name: ready_state
-- scope: global
SELECT (SELECT max(m.version) FROM schema_migration m) AS migration,
       current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'
         AND current_setting('synchronous_commit') <> 'off' AS durable,
       (SELECT min(d.days) FROM (SELECT count(*) FILTER (WHERE to_date(right(c.relname, 8), 'YYYYMMDD') > (now() AT TIME ZONE 'UTC')::date) AS days
          FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent IN ('event'::regclass, 'node_transition'::regclass, 'cluster_history'::regclass, 'audit'::regclass)
         GROUP BY i.inhparent) d) AS partitions_days;

-- Events of a follower, oldest first, and the org's present seq on each row; one row without a seq when there are none.
-- $2 last seq it has, $3 instant from which partitions are read, $4 at most
-- name: stream_events
SELECT h.event_seq AS head, e.seq, e.at, e.type, e.cluster_id, e.data
  FROM org_head h LEFT JOIN LATERAL (
    SELECT v.seq, v.at, v.type, v.cluster_id,
           (SELECT row_to_json(t)::text FROM (SELECT v.type, v.seq, v.at, v.severity, v.cluster_id, v.node_id, v.incident_id, v.repair_id,
                                                     v.summary) t) AS data
      FROM event v WHERE v.org_id = $1 AND v.seq > $2::bigint AND v.at >= $3::timestamptz
     ORDER BY v.seq LIMIT $4::int) e ON true
 WHERE h.org_id = $1 ORDER BY e.seq;

-- name: stream_cluster
SELECT c.id FROM cluster c WHERE c.org_id = $1 AND c.id = $2::uuid;

-- Summaries by version: the follower compares them with what it told last.
-- name: stream_samples
SELECT r.cluster_id, r.version FROM cluster_rollup r WHERE r.org_id = $1;

-- A person by name, one row an org; none for who is disabled or belongs to no org.
-- name: sign_in_person
-- scope: global
SELECT p.id AS person_id, o.id AS org_id FROM person p CROSS JOIN LATERAL person_orgs(p.id) o
 WHERE p.name = $1 AND NOT p.federated AND p.disabled_at IS NULL;

-- name: sign_in_link_create
-- scope: global
INSERT INTO sign_in_link (token_hash, person_id, expires_at)
VALUES ($1::bytea, $2::uuid, now() + $3::int * interval '1 second');

-- name: sign_in_audit
INSERT INTO audit (org_id, body) VALUES ($1, $2);

-- $1 person $2 whether they may make organizations
-- name: person_platform_set
-- scope: global
UPDATE person SET platform_admin = $2::boolean WHERE id = $1::uuid;
