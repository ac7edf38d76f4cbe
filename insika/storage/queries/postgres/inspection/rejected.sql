SELECT count(*) FROM rejected_jobs WHERE requeued_at IS NULL
