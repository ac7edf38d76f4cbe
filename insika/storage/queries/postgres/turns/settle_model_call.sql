-- A measure counts over an estimate, an estimate only where nothing is known.
UPDATE model_calls SET
  state = %(call_state)s, input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
  cache_write = %(cache_write)s, settled_at = insika_now()
WHERE turn_id = %(turn_id)s AND step = %(call_step)s AND attempt = %(call_attempt)s AND purpose = %(call_purpose)s
  AND (state = 'open' OR (state = 'estimated' AND %(call_state)s = 'measured'))
RETURNING true
