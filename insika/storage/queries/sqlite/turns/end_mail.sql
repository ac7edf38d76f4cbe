UPDATE mailbox SET ended = :how
WHERE session_id = :session_id AND position = :position AND ended IS NULL AND (verdict = 'control') = (:how = 'control')
