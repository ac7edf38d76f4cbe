UPDATE sessions SET log_seq = log_seq + 1, open_calls = :calls
WHERE id = :session_id AND lease_id = :lease_id AND turn_id = :turn_id AND open_calls = 0
RETURNING log_seq, epoch
