SELECT step, idx, call_id, name, arguments, side_effect, state, result, is_error, halts
FROM tool_calls WHERE turn_id = %(turn_id)s ORDER BY step, idx
