SELECT id, at, source, raw, error, requeued_at FROM rejected_jobs WHERE id = %(id)s
