UPDATE rejected_jobs SET requeued_at = insika_now() WHERE id = %(id)s RETURNING id
