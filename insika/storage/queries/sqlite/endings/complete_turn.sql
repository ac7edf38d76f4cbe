UPDATE turns SET
  state = 'completed', outcome = :outcome, synthesized = :synthesized, route = :route, timing = :timing,
  ended_at = insika_now()
WHERE id = :turn_id
