UPDATE model_calls SET
  state = 'estimated', settled_at = insika_now(),
  input = :input, output = :output, cache_read = :cache_read, cache_write = :cache_write
WHERE turn_id = :turn_id AND state = 'open'
