-- The attempt did not deliver, and another may follow.
UPDATE outbox
SET state              = 'pending',
    due_at             = :now + :delay,
    last_error         = :reason,
    possible_duplicate = max(possible_duplicate, :possible_duplicate)
WHERE id = :id AND claim = :claim AND state = 'delivering'
RETURNING lane, lane_pos, min(due_at, hold_until)
