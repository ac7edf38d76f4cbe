WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND urgent_seq <= %(urgent)s
  RETURNING turn_id
),
resumed AS (
  UPDATE turns SET state = 'running', attempt = attempt + 1
  FROM fence WHERE turns.id = fence.turn_id AND turns.state = 'waiting'
)
SELECT true FROM fence
