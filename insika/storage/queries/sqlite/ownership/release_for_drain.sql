UPDATE sessions SET lease_id = NULL, lease_until = NULL, due_at = 0
WHERE id = :session_id AND lease_id = :lease_id
RETURNING turn_id
