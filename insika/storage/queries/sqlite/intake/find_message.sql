-- The message that was accepted under a job's id, wherever it stands now.
SELECT s.id, m.position, m.turn_id, m.agent, m.channel, m.recipient, m.origin, m.ended, m.consumed_by
FROM sessions AS s
JOIN job_ids AS j ON j.session_id = s.id AND j.job_id = :job_id AND j.control = 0
JOIN mailbox AS m ON m.session_id = s.id AND m.position = j.position
WHERE s.tenant = :tenant AND s.name = :session
