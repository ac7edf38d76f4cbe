-- Once to each depth.
UPDATE turns SET
  agent = :agent, profile_revision = :profile_revision, limits = :limits, depth = depth + 1, model = :model
WHERE id = :turn_id AND depth = :depth - 1
