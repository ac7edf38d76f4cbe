UPDATE sessions SET lease_id = NULL, lease_until = NULL, due_at = :due_at
WHERE id = :session_id AND NOT EXISTS (SELECT 1 FROM mailbox WHERE session_id = :session_id AND ended IS NULL)
