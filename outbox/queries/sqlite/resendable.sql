SELECT state, claimed_at, session_id, lane FROM outbox WHERE id = :id
