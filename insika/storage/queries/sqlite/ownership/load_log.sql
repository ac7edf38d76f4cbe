-- What a provider wants back verbatim is sent again only while its turn runs.
SELECT seq, turn_id, epoch, step, role, content, tool_calls, tool_call_id, is_error, position,
       CASE WHEN turn_id = :turn_id THEN verbatim END
FROM messages WHERE session_id = :session_id AND seq > :after ORDER BY seq
