-- The newest first.
SELECT id, at, source, raw, error, requeued_at FROM rejected_jobs ORDER BY id DESC LIMIT %(limit)s
