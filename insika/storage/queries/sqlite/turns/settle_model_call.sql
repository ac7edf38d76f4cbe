UPDATE model_calls SET
  state = :state, settled_at = insika_now(),
  input = :input, output = :output, cache_read = :cache_read, cache_write = :cache_write
WHERE turn_id = :turn_id AND step = :step AND attempt = :attempt AND purpose = :purpose AND state <> 'measured'
