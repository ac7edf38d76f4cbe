UPDATE outbox
SET state       = 'delivering',
    claim       = :claim,
    claimed_at  = :now,
    claim_until = :now + CAST((timeout_s + :grace_s) * 1000000 AS INTEGER),
    hold_until  = coalesce(hold_until, :now + CAST(order_wait_s * 1000000 AS INTEGER)),
    attempts    = attempts + 1
WHERE id = :id AND state = 'pending'
RETURNING id, claim, channel, recipient, kind, payload, url, guarantee, attempts, attempts - tried_before,
          max_attempts, timeout_s, claimed_at, possible_duplicate
