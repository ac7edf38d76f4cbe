INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, created_at)
VALUES (:turn_id, :session_id, :position, 'queued', :agent, :channel, :recipient, :origin, insika_now())
