-- A row without a session has a lane of its own.
INSERT INTO outbox (id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee, max_attempts, timeout_s,
                    order_wait_s, unique_key, due_at, created_at)
SELECT id, :turn_id, :kind, :channel, id, 1, :recipient, :payload, :url, :guarantee, :max_attempts, :timeout_s,
       :order_wait_s, :key, insika_now(), insika_now()
FROM (SELECT printf('msg_%014x%s', insika_now(), :salt) AS id) WHERE true
ON CONFLICT (unique_key) DO NOTHING
