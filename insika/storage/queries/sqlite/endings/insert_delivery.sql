-- Ids begin with the time, so that the newest rows lie side by side in the file; the random rest makes them unique.
INSERT INTO outbox (id, session_id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
                    max_attempts, timeout_s, order_wait_s, unique_key, due_at, created_at)
VALUES (printf('msg_%014x%s', insika_now(), ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, insika_now(), insika_now())
ON CONFLICT (unique_key) DO NOTHING
