UPDATE mailbox SET ended = 'turn', consumed_by = :turn_id
WHERE session_id = :session_id AND position = :position AND ended IS NULL AND verdict <> 'control'
RETURNING text
