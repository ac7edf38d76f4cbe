UPDATE model_calls SET
  state = 'estimated', input = ?, output = ?, cache_read = ?, cache_write = ?, settled_at = insika_now()
WHERE turn_id = ? AND step = ? AND purpose = ? AND state = 'open'
