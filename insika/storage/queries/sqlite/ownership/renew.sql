UPDATE sessions SET lease_until = insika_now() + :lease_us WHERE id = :session_id AND lease_id = :lease_id
RETURNING urgent_seq
