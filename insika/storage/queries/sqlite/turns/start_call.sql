-- A call about which a person was asked moves only by the answer, while it counts and for what it was given.
UPDATE tool_calls SET state = 'started', started_at = insika_now()
WHERE turn_id = :turn_id AND step = :step AND idx = :index AND state = 'announced'
  AND CASE WHEN :arguments_hash IS NULL
    THEN NOT EXISTS (SELECT 1 FROM approvals AS a WHERE a.turn_id = tool_calls.turn_id AND a.call_id = tool_calls.call_id)
    ELSE EXISTS (
      SELECT 1 FROM approvals AS a
      WHERE a.turn_id = tool_calls.turn_id AND a.call_id = tool_calls.call_id AND a.decision = 'approved'
        AND a.arguments_hash = :arguments_hash AND a.expires_at > insika_now()) END
