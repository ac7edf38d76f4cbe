-- Answers how many results of an open batch are still to be written. Ending a turn demands nothing but the lease, and
-- that the control messages honoured by it are there.
UPDATE sessions SET
  log_seq    = log_seq + open_calls,
  lane_seq   = lane_seq + :deliveries,
  turn_id    = NULL,
  turn_key   = NULL,
  open_calls = 0,
  controls   = controls - :control,
  deaths     = 0
WHERE id = :session_id AND lease_id = :lease_id AND turn_id = :turn_id AND controls >= :control
RETURNING log_seq, epoch, lane_seq,
  log_seq - (SELECT coalesce(max(m.seq), 0) FROM messages AS m WHERE m.session_id = :session_id)
