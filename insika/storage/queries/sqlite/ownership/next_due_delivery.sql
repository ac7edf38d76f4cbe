-- A delivery held by another of its lane waits for that one: for its claim to be settled or to end, or its hold to pass.
SELECT min(at) FROM (
  SELECT * FROM (
    SELECT o.due_at AS at FROM outbox AS o
    WHERE o.state = 'pending' AND NOT EXISTS (
      SELECT 1 FROM outbox AS head
      WHERE head.lane = o.lane AND head.lane_pos < o.lane_pos AND head.state IN ('pending', 'delivering')
        AND (head.hold_until IS NULL OR head.hold_until > insika_now()))
    ORDER BY o.due_at LIMIT 1)
  UNION ALL
  SELECT min(claim_until) FROM outbox WHERE state = 'delivering'
  UNION ALL
  SELECT min(hold_until) FROM outbox WHERE state IN ('pending', 'delivering') AND hold_until > insika_now())
