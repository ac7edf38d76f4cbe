-- By pairs of id and lease, in the order of ids; one that is locked at this moment is passed over, not waited for.
WITH held AS MATERIALIZED (
  SELECT s.id
  FROM unnest(%(session_ids)s::bigint[], %(lease_ids)s::text[]) AS mine (id, lease_id)
  JOIN sessions AS s ON s.id = mine.id AND s.lease_id = mine.lease_id
  ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE sessions AS s SET lease_until = insika_now() + %(lease_ms)s * interval '1 ms'
FROM held WHERE s.id = held.id
RETURNING s.lease_id, s.urgent_seq
