SELECT position FROM job_ids
WHERE session_id = %(session_id)s AND job_id = %(request_id)s AND control AND digest = %(turn_id)s
  AND seen_at > insika_now() - interval '24 hours'
