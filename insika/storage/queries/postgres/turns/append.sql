WITH fence AS (
  UPDATE sessions SET log_seq = log_seq + 1, open_calls = %(open_calls)s
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls = 0
  RETURNING id, log_seq, epoch
),
announced AS (
  INSERT INTO tool_calls (turn_id, step, idx, session_id, call_id, name, arguments, side_effect, state, announced_at)
  SELECT %(turn_id)s, %(step)s, call.place - 1, fence.id, call.call_id, call.name, call.arguments, call.side_effect,
         'announced', insika_now()
  FROM fence
  CROSS JOIN ROWS FROM (
    json_to_recordset(%(calls)s::json) AS (call_id text, name text, arguments json, side_effect boolean)
  ) WITH ORDINALITY AS call (call_id, name, arguments, side_effect, place)
),
settled AS (
  UPDATE model_calls AS m SET
    state = %(call_state)s, input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM fence
  WHERE m.turn_id = %(turn_id)s AND m.step = %(call_step)s AND m.attempt = %(call_attempt)s
    AND m.purpose = %(call_purpose)s AND m.state <> 'measured'
),
speaks AS (
  UPDATE turns SET model = %(call_model)s
  FROM fence WHERE turns.id = %(turn_id)s AND turns.model IS DISTINCT FROM %(call_model)s
)
INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_calls, batch_open, verbatim, at)
SELECT id, log_seq, %(turn_id)s, epoch, %(step)s, 'assistant', %(content)s, %(tool_calls)s::json, %(batch_open)s,
       %(verbatim)s, insika_now()
FROM fence
RETURNING seq
