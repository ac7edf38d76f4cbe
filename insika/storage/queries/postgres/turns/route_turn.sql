-- Once by each of the turn's agents. The first that found a route speaks for the turn.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls = 0
    AND urgent_seq <= %(urgent)s
  RETURNING id, tenant
),
routed AS (
  UPDATE turns SET
    routes = turns.routes || jsonb_build_array(%(route)s::text),
    route  = coalesce(turns.route, %(route)s),
    model  = coalesce(turns.model, %(model)s)
  FROM fence WHERE turns.id = %(turn_id)s AND jsonb_array_length(turns.routes) = turns.depth
  RETURNING turns.agent
),
settled AS (
  UPDATE model_calls AS m SET
    state = %(call_state)s, input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM routed
  WHERE m.turn_id = %(turn_id)s AND m.step = %(call_step)s AND m.attempt = %(call_attempt)s
    AND m.purpose = %(call_purpose)s AND m.state <> 'measured'
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT %(turn_id)s, %(next_step)s, %(next_attempt)s, %(next_purpose)s, fence.id, fence.tenant, routed.agent,
         %(next_model)s, 'open', insika_now()
  FROM fence CROSS JOIN routed
  WHERE %(next_step)s::integer IS NOT NULL
  ON CONFLICT DO NOTHING
  RETURNING turn_id
)
SELECT true FROM fence
WHERE CASE
  WHEN EXISTS (SELECT FROM routed) AND (%(next_step)s::integer IS NULL OR EXISTS (SELECT FROM asked)) THEN true
  ELSE insika_undo('IN001', 'the turn was routed before, or this attempt opened') END
