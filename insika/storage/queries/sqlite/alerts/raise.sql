INSERT INTO alerts (key, raised_at) VALUES (:key, insika_now()) ON CONFLICT DO NOTHING
