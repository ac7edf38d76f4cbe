-- Answers whether the call never began.
UPDATE tool_calls SET state = ?, result = ?, is_error = ?, halts = ?, ended_at = insika_now()
WHERE turn_id = ? AND step = ? AND idx = ? AND call_id = ? AND state IN ('announced', 'started')
RETURNING started_at IS NULL
