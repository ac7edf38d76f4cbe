-- Under the session's row, as every position of its lanes: so what is resent goes behind what is there. A row without a
-- session has a lane of its own.
WITH wanted AS MATERIALIZED (
  SELECT o.session_id, o.lane, insika_now() AS now
  FROM outbox AS o
  WHERE o.id = %(id)s AND o.state IN ('failed', 'uncertain')
    AND (%(force)s OR o.claimed_at IS NULL OR o.claimed_at <= insika_now() - %(guard_s)s * interval '1 second')
),
placed AS (
  UPDATE sessions AS s SET lane_seq = s.lane_seq + 1
  FROM wanted WHERE s.id = wanted.session_id
  RETURNING s.lane_seq AS lane_pos
),
place AS MATERIALIZED (
  SELECT lane_pos FROM placed
  UNION ALL
  SELECT max(o.lane_pos) + 1 FROM wanted JOIN outbox AS o ON o.lane = wanted.lane
  WHERE wanted.session_id IS NULL HAVING count(*) > 0
)
UPDATE outbox AS o SET
  state              = 'pending',
  lane_pos           = place.lane_pos,
  due_at             = wanted.now + %(delay_s)s * interval '1 second',
  hold_until         = NULL,
  resends            = o.resends + 1,
  tried_before       = o.attempts,
  possible_duplicate = true,
  settled_at         = NULL
FROM wanted, place
WHERE o.id = %(id)s AND o.state IN ('failed', 'uncertain')
  AND (%(force)s OR o.claimed_at IS NULL OR o.claimed_at <= wanted.now - %(guard_s)s * interval '1 second')
RETURNING true
