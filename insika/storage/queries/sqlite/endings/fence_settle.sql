UPDATE sessions SET
  waiting    = waiting - :ended,
  controls   = controls - :control,
  lane_seq   = lane_seq + :deliveries,
  turn_key   = CASE WHEN turn_id IS NOT NULL AND :steerable_key IS NOT NULL AND urgent_seq <= :urgent
                    THEN :steerable_key ELSE turn_key END,
  merge_key  = CASE WHEN merge_turn = :turn_id THEN NULL ELSE merge_key END,
  merge_turn = nullif(merge_turn, :turn_id)
WHERE id = :session_id AND lease_id = :lease_id AND (NOT :merging OR mail_seq = :mail)
  AND waiting >= :ended AND controls >= :control
RETURNING lane_seq
