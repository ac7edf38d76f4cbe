-- Answers how many results of an open batch are still to be written (the log's count runs ahead of the log by them),
-- and whether, as far as the counters tell, nothing is left to do here.
UPDATE sessions SET
  log_seq    = log_seq + open_calls + :answers,
  lane_seq   = lane_seq + :deliveries,
  turn_id    = NULL,
  turn_key   = NULL,
  open_calls = 0,
  deaths     = 0
WHERE id = :session_id AND lease_id = :lease_id AND turn_id = :turn_id AND urgent_seq <= :urgent
  AND (open_calls > 0 OR NOT :closes)
RETURNING log_seq, epoch, lane_seq, mail_seq = :mail AND waiting = 0,
  log_seq - :answers - (SELECT coalesce(max(m.seq), 0) FROM messages AS m WHERE m.session_id = :session_id)
