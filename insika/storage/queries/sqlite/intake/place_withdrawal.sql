-- Not urgent: it stops nothing that runs or is about to.
UPDATE sessions SET mail_seq = mail_seq + 1, controls = controls + 1, due_at = 0 WHERE id = :session_id
RETURNING mail_seq
