-- Once by each of the turn's agents. The first that found a route speaks for the turn.
UPDATE turns SET
  routes = json_insert(routes, '$[#]', :route), route = coalesce(route, :route), model = coalesce(model, :model)
WHERE id = :turn_id AND json_array_length(routes) = depth
