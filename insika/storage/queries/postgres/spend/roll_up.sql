-- What is added is what the row held when it was marked. One that somebody is adding, or settling, is left for later.
WITH due AS MATERIALIZED (
  SELECT turn_id, step, attempt, purpose FROM model_calls
  WHERE NOT rolled_up AND state <> 'open' AND started_at < %(until)s
  LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
),
rolled AS (
  UPDATE model_calls AS m SET rolled_up = true
  FROM due
  WHERE m.turn_id = due.turn_id AND m.step = due.step AND m.attempt = due.attempt AND m.purpose = due.purpose
    AND NOT m.rolled_up
  RETURNING m.tenant, m.agent, (m.started_at AT TIME ZONE 'UTC')::date AS day,
            m.input + m.output + m.cache_read + m.cache_write AS tokens
),
added AS (
  INSERT INTO spend_days AS d (tenant, agent, day, tokens)
  SELECT tenant, agent, day, sum(tokens) FROM rolled GROUP BY tenant, agent, day ORDER BY tenant, agent, day
  ON CONFLICT (tenant, agent, day) DO UPDATE SET tokens = d.tokens + excluded.tokens
)
SELECT count(*) FROM rolled
