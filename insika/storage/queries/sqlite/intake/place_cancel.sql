UPDATE sessions SET
  mail_seq   = :position,
  urgent_seq = :position,
  controls   = controls + 1,
  turn_key   = CASE WHEN turn_id = :cuts THEN NULL ELSE turn_key END,
  merge_key  = CASE WHEN merge_turn = :cuts THEN NULL ELSE merge_key END,
  merge_turn = nullif(merge_turn, :cuts),
  due_at     = 0
WHERE id = :session_id
