-- When there may be something to do: a delivery that nothing holds is due, a hold ends, or a claim runs out.
SELECT min(at) FROM (
  SELECT * FROM (
    SELECT waiting.due_at AS at FROM outbox AS waiting
    WHERE waiting.state = 'pending'
      AND NOT EXISTS (
        SELECT 1 FROM outbox AS earlier
        WHERE earlier.lane = waiting.lane AND earlier.lane_pos < waiting.lane_pos
          AND earlier.state IN ('pending', 'delivering')
          AND (earlier.hold_until IS NULL OR earlier.hold_until > :now)
      )
    ORDER BY waiting.due_at
    LIMIT 1
  )
  UNION ALL
  SELECT min(hold_until) FROM outbox WHERE state IN ('pending', 'delivering') AND hold_until > :now
  UNION ALL
  SELECT min(claim_until) + 1 FROM outbox WHERE state = 'delivering'
)
