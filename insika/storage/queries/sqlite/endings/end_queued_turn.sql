UPDATE turns SET
  state = :state, outcome = CASE WHEN :state IN ('cancelled', 'refused') THEN :state END, ended_at = insika_now()
WHERE id = :turn_id AND session_id = :session_id AND state = 'queued'
