-- `started`: the turn now runs. Without it the turn is failed at once, and none runs afterwards.
UPDATE sessions SET
  log_seq    = log_seq + :taken,
  waiting    = waiting - :taken - :refused,
  turn_id    = CASE WHEN :started THEN :turn_id END,
  turn_key   = :steerable_key,
  deaths     = 0,
  load_from  = coalesce(:load_from, load_from),
  merge_key  = CASE WHEN merge_turn = :turn_id THEN NULL ELSE merge_key END,
  merge_turn = nullif(merge_turn, :turn_id)
WHERE id = :session_id AND lease_id = :lease_id AND turn_id IS NULL AND urgent_seq <= :urgent
  AND (NOT :merging OR mail_seq = :mail) AND waiting >= :taken + :refused
RETURNING log_seq, epoch
