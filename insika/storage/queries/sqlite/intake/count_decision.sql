-- It has a place among the mail, though no row there, so that no owner suspends or lets go without having seen it.
UPDATE sessions SET mail_seq = mail_seq + 1, due_at = 0 WHERE id = :session_id
