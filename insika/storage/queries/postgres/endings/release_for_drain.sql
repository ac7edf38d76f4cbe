-- Whatever has arrived: due now. A turn that has begun is parked.
WITH fence AS (
  UPDATE sessions SET
    lease_id    = NULL,
    lease_until = NULL,
    due_at      = '-infinity',
    parked_at   = CASE WHEN turn_id IS NOT NULL THEN insika_now() END
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s
  RETURNING turn_id
),
forgotten AS (
  UPDATE tool_calls AS c SET state = 'unknown', result = %(unknown_result)s, is_error = true, ended_at = insika_now()
  FROM fence WHERE c.turn_id = fence.turn_id AND c.state = 'started'
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM fence WHERE m.turn_id = fence.turn_id AND m.state = 'open'
)
SELECT true FROM fence
