-- A steer that was released has no turn yet; any other one was queued when it was accepted.
INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, profile_revision, limits,
                   started_seq, model, created_at, started_at)
VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, insika_now(), insika_now())
ON CONFLICT (id) DO UPDATE SET
  state = 'running', agent = excluded.agent, channel = excluded.channel, recipient = excluded.recipient,
  origin = excluded.origin, profile_revision = excluded.profile_revision, limits = excluded.limits,
  started_seq = excluded.started_seq, model = excluded.model, started_at = excluded.started_at
WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
