-- Once to each depth.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls = 0
    AND urgent_seq <= %(urgent)s
  RETURNING id, tenant
),
redirected AS (
  UPDATE turns SET
    agent = %(agent)s, profile_revision = %(profile_revision)s, limits = %(limits)s::json, depth = %(depth)s,
    model = %(model)s
  FROM fence WHERE turns.id = %(turn_id)s AND turns.depth = %(depth)s - 1
  RETURNING turns.id
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT %(turn_id)s, %(call_step)s, %(call_attempt)s, %(call_purpose)s, fence.id, fence.tenant, %(agent)s,
         %(call_model)s, 'open', insika_now()
  FROM fence CROSS JOIN redirected
  ON CONFLICT DO NOTHING
  RETURNING turn_id
)
SELECT true FROM fence
WHERE CASE WHEN EXISTS (SELECT FROM asked) THEN true
           ELSE insika_undo('IN001', 'the turn was redirected before, or this attempt opened') END
