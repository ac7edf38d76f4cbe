-- No row: the session has no such turn.
SELECT coalesce(max(m.attempt), 0) + 1
FROM turns AS t
LEFT JOIN model_calls AS m ON m.turn_id = t.id AND m.step = :step AND m.purpose = :purpose
WHERE t.id = :turn_id AND t.session_id = :session_id GROUP BY t.id
