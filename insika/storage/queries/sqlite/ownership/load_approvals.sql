SELECT id, turn_id, session_id, call_id, tool, arguments_hash, asked_at, expires_at, decision, decided_by, reason,
       decided_at
FROM approvals WHERE turn_id = :turn_id ORDER BY asked_at, id
