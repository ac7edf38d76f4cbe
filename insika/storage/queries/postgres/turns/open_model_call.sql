-- Text is screened for a turn that runs and for one that has not begun. The next
-- attempt's number is free but where the same owner opens another at this moment: then there is none; say it again.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND urgent_seq <= %(urgent)s
  RETURNING id, tenant
),
aimed AS MATERIALIZED (
  SELECT fence.id AS session_id, fence.tenant, t.id AS turn_id, t.agent,
         (SELECT coalesce(max(m.attempt), 0) + 1 FROM model_calls AS m
          WHERE m.turn_id = t.id AND m.step = %(step)s AND m.purpose = %(purpose)s) AS attempt
  FROM fence
  JOIN turns AS t ON t.id = %(turn_id)s AND t.session_id = fence.id
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM aimed
  WHERE m.turn_id = aimed.turn_id AND m.step = %(step)s AND m.purpose = %(purpose)s AND m.state = 'open'
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT turn_id, %(step)s, attempt, %(purpose)s, session_id, tenant, agent, %(model)s, 'open', insika_now()
  FROM aimed
  ON CONFLICT DO NOTHING
  RETURNING attempt
)
SELECT asked.attempt FROM aimed LEFT JOIN asked ON true
