-- Where a control message stands that was asked for under this id, with the same aim, within a day.
SELECT position FROM job_ids
WHERE session_id = %(session_id)s AND job_id = %(request_id)s AND control AND digest = %(aim)s
  AND seen_at > insika_now() - interval '24 hours'
