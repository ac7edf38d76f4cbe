INSERT INTO rejected_jobs (at, source, raw, error)
VALUES (insika_now(), %(source)s, %(raw)s, %(error)s::json) RETURNING id
