UPDATE turns SET state = :state, outcome = :outcome, error = :error, timing = :timing, ended_at = insika_now()
WHERE id = :turn_id
