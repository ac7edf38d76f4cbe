UPDATE sessions SET epoch = epoch WHERE id = :session_id AND lease_id = :lease_id
