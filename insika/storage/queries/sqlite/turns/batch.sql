SELECT idx, call_id, result, is_error FROM tool_calls WHERE turn_id = :turn_id AND step = :step ORDER BY idx
