SELECT seq, turn_id, epoch, step, role, content, tool_calls, tool_call_id, is_error, position, verbatim
FROM messages WHERE session_id = :session_id AND seq > :after ORDER BY seq
