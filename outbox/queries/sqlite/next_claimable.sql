-- The oldest delivery that is due and that nothing before it in its lane holds. An open row holds without limit until
-- it was claimed for the first time, and from then on until its hold_until.
SELECT head.id,
       EXISTS (
         SELECT 1 FROM outbox AS earlier
         WHERE earlier.lane = head.lane AND earlier.lane_pos < head.lane_pos
           AND earlier.state IN ('pending', 'delivering')
       ) AS overtakes
FROM outbox AS head
WHERE head.state = 'pending' AND head.due_at <= :now
  AND NOT EXISTS (
    SELECT 1 FROM outbox AS earlier
    WHERE earlier.lane = head.lane AND earlier.lane_pos < head.lane_pos
      AND earlier.state IN ('pending', 'delivering')
      AND (earlier.hold_until IS NULL OR earlier.hold_until > :now)
  )
ORDER BY head.due_at
LIMIT 1
