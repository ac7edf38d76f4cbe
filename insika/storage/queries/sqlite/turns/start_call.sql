UPDATE tool_calls SET state = 'started', started_at = insika_now()
WHERE turn_id = :turn_id AND step = :step AND idx = :index AND state = 'announced'
