UPDATE model_calls SET
  state = ?, input = ?, output = ?, cache_read = ?, cache_write = ?, settled_at = insika_now()
WHERE turn_id = ? AND step = ? AND attempt = ? AND purpose = ? AND state <> 'measured'
