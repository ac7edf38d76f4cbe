SELECT 1 FROM tool_calls WHERE turn_id = :turn_id AND call_id = :call_id AND state = 'announced'
