UPDATE sessions SET
  log_seq    = log_seq + :added,
  open_calls = 0,
  waiting    = waiting - :absorbed - :refused,
  turn_key   = CASE WHEN :takes_steers THEN turn_key END
WHERE id = :session_id AND lease_id = :lease_id AND turn_id = :turn_id AND open_calls = :results
  AND urgent_seq <= :urgent AND (NOT :nothing_unseen OR mail_seq = :mail)
  AND waiting >= :absorbed + :refused
RETURNING log_seq, epoch
