WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s
  RETURNING id
),
moved AS (
  UPDATE tool_calls AS c SET
    state = %(state)s, result = %(content)s, is_error = %(is_error)s, halts = %(halts)s, ended_at = insika_now()
  FROM fence
  WHERE c.turn_id = %(turn_id)s AND c.step = %(step)s AND c.idx = %(index)s AND c.call_id = %(call_id)s
    AND c.state IN ('announced', 'started')
  RETURNING c.idx
)
SELECT EXISTS (SELECT FROM moved) FROM fence
