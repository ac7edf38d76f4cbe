-- The columns that a verdict is taken from, and what is known of this job's id. `fresh`: within the last 24 hours.
SELECT s.id, s.mail_seq, s.waiting, s.turn_id, s.turn_key, s.merge_turn, s.merge_key, s.vars,
       j.digest, j.position, j.turn_id, j.seen_at > insika_now() - 86400000000
FROM sessions AS s
LEFT JOIN job_ids AS j ON j.session_id = s.id AND j.job_id = :job_id AND j.control = 0
WHERE s.tenant = :tenant AND s.name = :session
