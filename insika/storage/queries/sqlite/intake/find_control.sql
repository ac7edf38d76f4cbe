SELECT digest, position, seen_at > insika_now() - 86400000000
FROM job_ids WHERE session_id = :session_id AND job_id = :job_id AND control = 1
