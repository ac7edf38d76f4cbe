-- Never let go for good while something is left to do: a turn that runs, or a message that waits, a control message too.
UPDATE sessions SET lease_id = NULL, lease_until = NULL, due_at = :due_at
WHERE id = :session_id AND lease_id = :lease_id AND mail_seq = :mail
  AND (:due_at < 4611686018427387904 OR (turn_id IS NULL AND waiting = 0 AND controls = 0))
