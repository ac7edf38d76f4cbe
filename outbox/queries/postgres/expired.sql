SELECT claim, attempts - tried_before,
       id, state, channel, recipient, kind, lane, lane_pos, url, guarantee, attempts, max_attempts, resends,
       possible_duplicate, last_error, payload, created_at, due_at, claimed_at, settled_at, claim_until
FROM outbox
WHERE state = 'delivering' AND claim_until < (SELECT insika_now())
ORDER BY claim_until
LIMIT 500
