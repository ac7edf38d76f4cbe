SELECT max(lane_pos) + 1 FROM outbox WHERE lane = :lane
