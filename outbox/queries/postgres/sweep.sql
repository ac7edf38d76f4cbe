-- Writes what was decided about claims that ran out. A row that was settled meanwhile, or that another sweep is at, is
-- passed over: it is the other's to tell of. Lanes are pushed as when a single attempt is settled.
WITH clock AS MATERIALIZED (SELECT insika_now() AS now),
found AS MATERIALIZED (
  SELECT o.id, decided.state, decided.reason, decided.delay_s, decided.possible_duplicate, decided.alerts
  FROM json_to_recordset(%(decided)s::json) AS decided (
    id text, claim text, state text, reason text, delay_s double precision, possible_duplicate boolean, alerts json)
  JOIN outbox AS o ON o.id = decided.id AND o.claim = decided.claim AND o.state = 'delivering'
  ORDER BY o.id
  FOR NO KEY UPDATE OF o SKIP LOCKED
),
swept AS (
  UPDATE outbox AS o SET
    state              = found.state,
    due_at             = CASE WHEN found.state = 'pending' THEN clock.now + found.delay_s * interval '1 second'
                              ELSE o.due_at END,
    settled_at         = CASE WHEN found.state = 'pending' THEN o.settled_at ELSE clock.now END,
    last_error         = found.reason,
    possible_duplicate = o.possible_duplicate OR found.possible_duplicate
  FROM found, clock
  WHERE o.id = found.id
  RETURNING o.*, found.alerts
),
behind AS MATERIALIZED (
  SELECT o.id, head.due_at
  FROM outbox AS o
  CROSS JOIN LATERAL (
    SELECT max(least(swept.due_at, swept.hold_until)) AS due_at
    FROM swept WHERE swept.state = 'pending' AND swept.lane = o.lane AND swept.lane_pos < o.lane_pos
  ) AS head
  WHERE o.lane IN (SELECT lane FROM swept WHERE state = 'pending') AND o.state = 'pending' AND o.due_at < head.due_at
  ORDER BY o.lane, o.lane_pos
  FOR NO KEY UPDATE OF o SKIP LOCKED
),
pushed AS (
  UPDATE outbox AS o SET due_at = behind.due_at FROM behind WHERE o.id = behind.id
),
raised AS MATERIALIZED (
  SELECT key FROM swept CROSS JOIN LATERAL insika_raise(swept.alerts, swept.turn_id) AS key
  WHERE swept.kind = 'answer' AND swept.state IN ('failed', 'uncertain') AND json_array_length(swept.alerts) > 0
)
SELECT id, state, channel, recipient, kind, lane, lane_pos, url, guarantee, attempts, max_attempts, resends,
       possible_duplicate, last_error, payload, created_at, due_at, claimed_at, settled_at, claim_until,
       (SELECT count(*) FROM raised)
FROM swept
ORDER BY claim_until
