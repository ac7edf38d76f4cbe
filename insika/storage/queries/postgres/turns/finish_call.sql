-- An approval is given up only while its call has never begun.
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
  RETURNING c.idx, c.started_at IS NULL AS unused
),
given_up AS (
  UPDATE approvals AS a SET decision = %(approval)s, decided_at = coalesce(a.decided_at, insika_now())
  FROM moved
  WHERE moved.unused AND a.turn_id = %(turn_id)s AND a.call_id = %(call_id)s AND %(approval)s::text IS NOT NULL
    AND (a.decision IS NULL OR a.decision = 'approved')
)
SELECT EXISTS (SELECT FROM moved) FROM fence
