-- When there may be something to do: a delivery that nothing holds is due, a hold ends, or a claim runs out.
WITH clock AS MATERIALIZED (SELECT insika_now() AS now)
SELECT min(at) FROM (
  (
    SELECT waiting.due_at AS at FROM outbox AS waiting
    WHERE waiting.state = 'pending'
      AND NOT EXISTS (
        SELECT FROM outbox AS earlier
        WHERE earlier.lane = waiting.lane AND earlier.lane_pos < waiting.lane_pos
          AND earlier.state IN ('pending', 'delivering')
          AND (earlier.hold_until IS NULL OR earlier.hold_until > (SELECT now FROM clock))
      )
    ORDER BY waiting.due_at
    LIMIT 1
  )
  UNION ALL
  SELECT min(hold_until) FROM outbox
  WHERE state IN ('pending', 'delivering') AND hold_until > (SELECT now FROM clock)
  UNION ALL
  SELECT min(claim_until) + interval '1 microsecond' FROM outbox WHERE state = 'delivering'
) AS moments
