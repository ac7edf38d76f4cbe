-- Text is screened for a turn that runs and for one that has not begun.
UPDATE sessions SET log_seq = log_seq
WHERE id = :session_id AND lease_id = :lease_id AND urgent_seq <= :urgent
