UPDATE outbox
SET state              = 'pending',
    lane_pos           = :lane_pos,
    due_at             = :due_at,
    hold_until         = NULL,
    resends            = resends + 1,
    tried_before       = attempts,
    possible_duplicate = 1,
    settled_at         = NULL
WHERE id = :id AND state IN ('failed', 'uncertain')
