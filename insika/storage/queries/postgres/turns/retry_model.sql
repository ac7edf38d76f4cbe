WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls = 0
    AND urgent_seq <= %(urgent)s
  RETURNING id, tenant
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM fence
  WHERE m.turn_id = %(turn_id)s AND m.state = 'open'
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT %(turn_id)s, %(call_step)s, %(call_attempt)s, %(call_purpose)s, fence.id, fence.tenant, turns.agent,
         %(call_model)s, 'open', insika_now()
  FROM fence
  JOIN turns ON turns.id = %(turn_id)s
  ON CONFLICT DO NOTHING
  RETURNING turn_id
)
SELECT true FROM fence
WHERE CASE WHEN EXISTS (SELECT FROM asked) THEN true
           ELSE insika_undo('IN001', 'this attempt was opened before') END
