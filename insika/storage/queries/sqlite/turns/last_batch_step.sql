SELECT max(step) FROM tool_calls WHERE turn_id = :turn_id
