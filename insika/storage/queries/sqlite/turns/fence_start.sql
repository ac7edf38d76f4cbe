-- `started`: the turn now runs, which an operator's hold forbids. Without it the turn is failed at once, and none runs
-- afterwards.
UPDATE sessions SET
  log_seq    = log_seq + :taken,
  waiting    = waiting - :taken - :refused,
  turn_id    = CASE WHEN :started THEN :turn_id END,
  turn_key   = :steerable_key,
  deaths     = 0,
  parked_ms  = CASE WHEN :started THEN 0 ELSE parked_ms END,
  load_from  = coalesce(:load_from, load_from),
  merge_key  = CASE WHEN merge_turn = :turn_id THEN NULL ELSE merge_key END,
  merge_turn = nullif(merge_turn, :turn_id)
WHERE id = :session_id AND lease_id = :lease_id AND turn_id IS NULL AND NOT (:started AND paused)
  AND urgent_seq <= :urgent AND (NOT :merging OR mail_seq = :mail) AND waiting >= :taken + :refused
RETURNING log_seq, epoch
