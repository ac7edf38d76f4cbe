-- The end of an attempt. Only the holder of the current claim may write it; when the claim has run out meanwhile, it
-- may still tell that the delivery arrived.
UPDATE outbox SET state = %(state)s, last_error = %(reason)s, settled_at = insika_now()
WHERE id = %(id)s AND claim = %(claim)s
  AND (state = 'delivering' OR (state = 'uncertain' AND %(state)s = 'delivered'))
RETURNING true
