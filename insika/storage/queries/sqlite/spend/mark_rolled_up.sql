-- The index holds no others than those that are not added up yet.
UPDATE model_calls SET rolled_up = 1
WHERE (turn_id, step, attempt, purpose) IN (
  SELECT turn_id, step, attempt, purpose FROM model_calls INDEXED BY model_calls_to_sum_up
  WHERE rolled_up = 0 AND state <> 'open' AND started_at < :until LIMIT :limit)
RETURNING tenant, agent, started_at / 86400000000, input + output + cache_read + cache_write
