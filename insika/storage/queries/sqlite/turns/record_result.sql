UPDATE tool_calls SET state = :state, result = :result, is_error = :is_error, halts = :halts, ended_at = insika_now()
WHERE turn_id = :turn_id AND step = :step AND idx = :index AND call_id = :call_id AND state IN ('announced', 'started')
