WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND urgent_seq <= %(urgent)s
  RETURNING turn_id
),
resumed AS (
  UPDATE turns SET state = 'running', attempt = attempt + (turns.state = 'waiting')::int
  FROM fence WHERE turns.id = fence.turn_id
)
SELECT true FROM fence
