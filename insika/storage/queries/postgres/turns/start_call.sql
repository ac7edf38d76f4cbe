-- Two answers: whether the fence held, and whether the call moved. Expired and lost must not look alike.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND urgent_seq <= %(urgent)s
  RETURNING id
),
moved AS (
  UPDATE tool_calls AS c SET state = 'started', started_at = insika_now()
  FROM fence
  WHERE c.turn_id = %(turn_id)s AND c.step = %(step)s AND c.idx = %(index)s AND c.state = 'announced'
  RETURNING c.idx
)
SELECT EXISTS (SELECT FROM moved) FROM fence
