-- Two answers: whether the fence held, and whether the call moved. Expired and lost must not look alike. Whether a person
-- was asked stands in the call's own row, and an answer's time is compared once the fence holds.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND urgent_seq <= %(urgent)s
  RETURNING id
),
moved AS (
  UPDATE tool_calls AS c SET state = 'started', started_at = insika_now()
  FROM fence
  WHERE c.turn_id = %(turn_id)s AND c.step = %(step)s AND c.idx = %(index)s AND c.state = 'announced'
    AND c.asked = (%(arguments_hash)s::text IS NOT NULL)
    AND (NOT c.asked OR EXISTS (
      SELECT FROM approvals AS a
      WHERE a.turn_id = c.turn_id AND a.call_id = c.call_id AND a.session_id = fence.id AND a.decision = 'approved'
        AND a.arguments_hash = %(arguments_hash)s AND a.expires_at > insika_now()))
  RETURNING c.idx
)
SELECT EXISTS (SELECT FROM moved) FROM fence
