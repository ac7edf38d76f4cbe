SELECT t.session_id, t.state, t.agent, t.channel, t.recipient, t.origin, s.mail_seq
FROM turns AS t
JOIN sessions AS s ON s.id = t.session_id
WHERE t.id = :turn_id
