INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, agent, model, state, started_at)
SELECT :turn_id, :step, :attempt, :purpose, session_id, agent, :model, 'open', insika_now() FROM turns WHERE id = :turn_id
ON CONFLICT DO NOTHING
RETURNING turn_id
