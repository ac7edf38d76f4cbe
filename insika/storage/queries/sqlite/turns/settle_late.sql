-- A measure counts over an estimate, an estimate only where nothing is known.
UPDATE model_calls SET
  state = ?1, input = ?2, output = ?3, cache_read = ?4, cache_write = ?5, settled_at = insika_now()
WHERE turn_id = ?6 AND step = ?7 AND attempt = ?8 AND purpose = ?9
  AND (state = 'open' OR (state = 'estimated' AND ?1 = 'measured'))
