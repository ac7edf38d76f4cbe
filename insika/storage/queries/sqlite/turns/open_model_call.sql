INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
VALUES (?1, ?2, ?3, ?4, ?5, (SELECT tenant FROM sessions WHERE id = ?5), (SELECT agent FROM turns WHERE id = ?1), ?6,
        'open', insika_now())
ON CONFLICT DO NOTHING
