SELECT state, claimed_at + %(guard_s)s * interval '1 second',
       claimed_at IS NOT NULL AND claimed_at > insika_now() - %(guard_s)s * interval '1 second'
FROM outbox
WHERE id = %(id)s
