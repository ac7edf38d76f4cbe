-- Where a message went: the turn that consumed it, else the one it was accepted for.
SELECT t.id, t.state
FROM mailbox AS m
JOIN turns AS t ON t.id = coalesce(m.consumed_by, m.turn_id)
WHERE m.session_id = :session_id AND m.position = :position
