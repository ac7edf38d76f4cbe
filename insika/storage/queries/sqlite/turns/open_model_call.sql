INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, agent, model, state, started_at)
VALUES (:turn_id, :step, :attempt, :purpose, :session_id, (SELECT agent FROM turns WHERE id = :turn_id), :model, 'open',
        insika_now())
ON CONFLICT DO NOTHING
