INSERT INTO approvals (id, turn_id, call_id, session_id, tool, arguments_hash, asked_at, expires_at)
SELECT :id, :turn_id, :call_id, :session_id, :tool, :arguments_hash, insika_now(), insika_now() + :valid_us
WHERE NOT EXISTS (SELECT 1 FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id)
