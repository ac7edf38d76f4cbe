-- Never let go for good while something is left to do: a turn that runs, or a message that waits, a control message too.
UPDATE sessions SET lease_id = NULL, lease_until = NULL, due_at = %(due_at)s
WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND mail_seq = %(mail)s
  AND (%(due_at)s < 'infinity'::timestamptz OR (turn_id IS NULL AND waiting = 0 AND controls = 0))
RETURNING id
