-- `open`: nobody has decided, and its turn goes on. `in_time`: a decision would come before it expires.
SELECT a.session_id, a.decision IS NULL AND s.turn_id IS a.turn_id, a.expires_at > insika_now()
FROM approvals AS a
JOIN sessions AS s ON s.id = a.session_id
WHERE a.id = :approval_id
