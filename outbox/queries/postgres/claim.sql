-- The oldest delivery that is due and that nothing before it in its lane holds. An open row holds without limit until
-- it was claimed for the first time, and from then on until its hold_until. A row that somebody is claiming is passed
-- over; so is, for now, what it holds.
WITH clock AS MATERIALIZED (SELECT insika_now() AS now),
head AS MATERIALIZED (
  SELECT o.id,
         EXISTS (
           SELECT FROM outbox AS earlier
           WHERE earlier.lane = o.lane AND earlier.lane_pos < o.lane_pos
             AND earlier.state IN ('pending', 'delivering')
         ) AS overtakes
  FROM outbox AS o
  WHERE o.state = 'pending' AND o.due_at <= (SELECT now FROM clock)
    AND NOT EXISTS (
      SELECT FROM outbox AS earlier
      WHERE earlier.lane = o.lane AND earlier.lane_pos < o.lane_pos
        AND earlier.state IN ('pending', 'delivering')
        AND (earlier.hold_until IS NULL OR earlier.hold_until > (SELECT now FROM clock))
    )
  ORDER BY o.due_at
  LIMIT 1
  FOR NO KEY UPDATE OF o SKIP LOCKED
)
UPDATE outbox AS o SET
  state       = 'delivering',
  claim       = %(claim)s,
  claimed_at  = clock.now,
  claim_until = clock.now + (o.timeout_s + %(grace_s)s) * interval '1 second',
  hold_until  = coalesce(o.hold_until, clock.now + o.order_wait_s * interval '1 second'),
  attempts    = o.attempts + 1
FROM head, clock
WHERE o.id = head.id AND o.state = 'pending'
RETURNING o.id, o.claim, o.channel, o.recipient, o.kind, o.payload, o.url, o.guarantee, o.attempts,
          o.attempts - o.tried_before, o.max_attempts, o.timeout_s, o.claimed_at, o.possible_duplicate, head.overtakes
