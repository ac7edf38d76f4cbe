INSERT INTO rejected_jobs (at, source, raw, error) VALUES (insika_now(), :source, :raw, :error) RETURNING id
