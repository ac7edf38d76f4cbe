-- The attempt did not deliver, and another may follow. What waits behind it in its lane is then not due before it, or
-- before its hold ends: without this every claim would look at each of them. One that somebody is changing is left out.
WITH settled AS (
  UPDATE outbox SET
    state              = 'pending',
    due_at             = insika_now() + %(delay_s)s * interval '1 second',
    last_error         = %(reason)s,
    possible_duplicate = possible_duplicate OR %(possible_duplicate)s
  WHERE id = %(id)s AND claim = %(claim)s AND state = 'delivering'
  RETURNING lane, lane_pos, least(due_at, hold_until) AS due_at
),
behind AS MATERIALIZED (
  SELECT o.id, settled.due_at
  FROM settled
  JOIN outbox AS o ON o.lane = settled.lane AND o.lane_pos > settled.lane_pos
    AND o.state = 'pending' AND o.due_at < settled.due_at
  ORDER BY o.lane_pos
  FOR NO KEY UPDATE OF o SKIP LOCKED
),
pushed AS (
  UPDATE outbox AS o SET due_at = behind.due_at FROM behind WHERE o.id = behind.id
)
SELECT true FROM settled
