WITH clock AS MATERIALIZED (
  SELECT insika_now() AS now, insika_now() - %(late_s)s * interval '1 s' AS late
)
SELECT count(*) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = 'pending' AND due_at < late),
       coalesce(extract(epoch FROM max(now - due_at) FILTER (WHERE state = 'pending' AND due_at < late)), 0)::float8,
       count(*) FILTER (WHERE state = 'delivering' AND claim_until < late),
       count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE state = 'uncertain')
FROM outbox, clock
