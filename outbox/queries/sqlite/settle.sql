-- The end of an attempt. Only the holder of the current claim may write it; when the claim has run out meanwhile, it
-- may still tell that the delivery arrived.
UPDATE outbox
SET state = :state, last_error = :reason, settled_at = :now
WHERE id = :id AND claim = :claim
  AND (state = 'delivering' OR (state = 'uncertain' AND :state = 'delivered'))
RETURNING kind, turn_id
