UPDATE sessions SET lane_seq = lane_seq + 1 WHERE id = :session_id RETURNING lane_seq
