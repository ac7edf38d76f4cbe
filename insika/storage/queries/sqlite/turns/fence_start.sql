-- `runs`: the turn now runs. Without it, it ends at once, and none runs afterwards. `begins`: an operator's hold forbids
-- it.
UPDATE sessions SET
  log_seq    = log_seq + :taken + :answers,
  lane_seq   = lane_seq + :deliveries,
  waiting    = waiting - :taken - :refused,
  turn_id    = CASE WHEN :runs THEN :turn_id END,
  turn_key   = :steerable_key,
  deaths     = 0,
  parked_ms  = CASE WHEN :runs THEN 0 ELSE parked_ms END,
  load_from  = coalesce(:load_from, load_from),
  merge_key  = CASE WHEN merge_turn = :turn_id THEN NULL ELSE merge_key END,
  merge_turn = nullif(merge_turn, :turn_id)
WHERE id = :session_id AND lease_id = :lease_id AND turn_id IS NULL AND NOT (:begins AND paused)
  AND urgent_seq <= :urgent AND (NOT :merging OR mail_seq = :mail) AND waiting >= :taken + :refused
RETURNING log_seq, epoch, lane_seq
