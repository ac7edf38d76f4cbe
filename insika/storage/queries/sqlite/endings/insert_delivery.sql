INSERT INTO outbox (id, session_id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
                    max_attempts, timeout_s, order_wait_s, due_at, created_at, unique_key)
VALUES (:id, :session_id, :turn_id, :kind, :channel, :lane, :lane_pos, :recipient, :payload, :url, :guarantee,
        :max_attempts, :timeout_s, :order_wait_s, insika_now(), insika_now(), :unique_key)
ON CONFLICT (unique_key) DO NOTHING
