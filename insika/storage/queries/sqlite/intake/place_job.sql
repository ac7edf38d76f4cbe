-- A due time is only ever pulled earlier here. `waits_ms` NULL: due now.
UPDATE sessions SET
  mail_seq   = :position,
  waiting    = waiting + 1,
  urgent_seq = CASE WHEN :cuts IS NULL THEN urgent_seq ELSE :position END,
  turn_key   = CASE WHEN :cuts IS NULL THEN turn_key END,
  merge_turn = :merge_turn,
  merge_key  = :merge_key,
  vars       = :vars,
  due_at     = min(due_at, CASE WHEN :waits_ms IS NULL THEN 0 ELSE insika_now() + :waits_ms * 1000 END)
WHERE id = :session_id
