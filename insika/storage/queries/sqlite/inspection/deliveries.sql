WITH clock AS (
  SELECT insika_now() AS now, insika_now() - :late_us AS late
)
SELECT count(*) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = 'pending' AND due_at < late),
       coalesce(max(now - due_at) FILTER (WHERE state = 'pending' AND due_at < late), 0) / 1e6,
       count(*) FILTER (WHERE state = 'delivering' AND claim_until < late),
       count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE state = 'uncertain')
FROM outbox, clock
