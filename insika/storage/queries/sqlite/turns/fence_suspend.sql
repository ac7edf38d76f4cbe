-- What was decided counts as mail, so no decision comes between what the owner looked at and this.
UPDATE sessions SET
  lease_id    = NULL,
  lease_until = NULL,
  due_at      = (SELECT min(a.expires_at) FROM approvals AS a WHERE a.turn_id = :turn_id AND a.decision IS NULL),
  parked_at   = insika_now()
WHERE id = :session_id AND lease_id = :lease_id AND turn_id = :turn_id AND open_calls > 0
  AND mail_seq = :mail AND urgent_seq <= :urgent
  AND EXISTS (SELECT 1 FROM approvals AS a WHERE a.turn_id = :turn_id AND a.decision IS NULL)
  AND NOT EXISTS (SELECT 1 FROM tool_calls AS c WHERE c.turn_id = :turn_id AND c.state = 'started')
