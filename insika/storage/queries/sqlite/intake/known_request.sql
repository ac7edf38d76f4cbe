-- Where a control message stands that was asked for under this id, with the same aim, within a day.
SELECT position FROM job_ids
WHERE session_id = :session_id AND job_id = :request_id AND control = 1 AND digest = :aim
  AND seen_at > insika_now() - 86400000000
