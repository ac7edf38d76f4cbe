INSERT INTO tool_calls (turn_id, step, idx, session_id, call_id, name, arguments, side_effect, state, announced_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'announced', insika_now())
