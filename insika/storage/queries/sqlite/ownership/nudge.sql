UPDATE sessions SET nudged_at = insika_now(), nudges = nudges + 1 WHERE id = :session_id
