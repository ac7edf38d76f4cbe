-- Sessions: due, unowned (or the lease over), and not held back by the last nudge; when the first will be all three.
-- Deliveries: one held by another of its lane waits for that one, for its claim to be settled or to end, or its hold to
-- pass.
SELECT least(
  (SELECT min(greatest(due_at, lease_until + interval '1 microsecond',
                       CASE WHEN nudged_at <= (SELECT insika_now())
                            THEN nudged_at + least(interval '5 s' * 2 ^ least(nudges - 1, 4), interval '60 s') END))
   FROM sessions WHERE due_at < 'infinity' AND (NOT paused OR controls > 0)),
  (SELECT o.due_at FROM outbox AS o
   WHERE o.state = 'pending' AND NOT EXISTS (
     SELECT 1 FROM outbox AS head
     WHERE head.lane = o.lane AND head.lane_pos < o.lane_pos AND head.state IN ('pending', 'delivering')
       AND (head.hold_until IS NULL OR head.hold_until > (SELECT insika_now())))
   ORDER BY o.due_at LIMIT 1),
  (SELECT min(claim_until) FROM outbox WHERE state = 'delivering'),
  (SELECT min(hold_until) FROM outbox WHERE state IN ('pending', 'delivering') AND hold_until > (SELECT insika_now())),
  'infinity')
