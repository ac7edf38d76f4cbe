SELECT id, claim, attempts - tried_before, max_attempts, guarantee
FROM outbox
WHERE state = 'delivering' AND claim_until < (SELECT insika_now())
ORDER BY claim_until
LIMIT 500
