UPDATE tool_calls SET state = 'unknown', result = :result, is_error = 1, ended_at = insika_now()
WHERE turn_id = :turn_id AND state = 'started'
