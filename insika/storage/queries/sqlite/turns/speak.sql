-- The model that has answered speaks for the rest of the turn.
UPDATE turns SET model = :model WHERE id = :turn_id AND model IS NOT :model
