SELECT turn_id, step, attempt, purpose, model, state, input, output, cache_read, cache_write, agent
FROM model_calls WHERE turn_id = :turn_id ORDER BY step, attempt, purpose
