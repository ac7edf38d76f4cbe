-- Whatever has arrived: due now. A turn that has begun is parked.
UPDATE sessions SET
  lease_id    = NULL,
  lease_until = NULL,
  due_at      = 0,
  parked_at   = CASE WHEN turn_id IS NOT NULL THEN insika_now() END
WHERE id = :session_id AND lease_id = :lease_id
RETURNING turn_id
