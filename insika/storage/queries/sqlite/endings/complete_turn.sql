UPDATE turns SET
  state = 'completed', outcome = :outcome, synthesized = :synthesized, route = coalesce(:route, route),
  model = coalesce(:model, model), timing = :timing, ended_at = insika_now()
WHERE id = :turn_id
