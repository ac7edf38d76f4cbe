INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, created_at)
VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, insika_now())
