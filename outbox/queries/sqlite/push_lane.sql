-- What waits behind a delivery that will be tried again is not due before it, or before its hold ends. Without this
-- every claim would look at each of them.
UPDATE outbox
SET due_at = :due_at
WHERE lane = :lane AND lane_pos > :lane_pos AND state = 'pending' AND due_at < :due_at
