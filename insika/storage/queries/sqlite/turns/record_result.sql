-- Answers when the call began. (Asked IS NULL of it here, SQLite 3.40 always says no.)
UPDATE tool_calls SET state = ?, result = ?, is_error = ?, halts = ?, ended_at = insika_now()
WHERE turn_id = ? AND step = ? AND idx = ? AND call_id = ? AND state IN ('announced', 'started')
RETURNING started_at
