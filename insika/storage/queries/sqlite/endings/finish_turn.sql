INSERT INTO turns (id, session_id, position, state, outcome, agent, channel, recipient, origin, profile_revision, limits,
                   timing, started_seq, created_at, started_at, ended_at)
VALUES (:turn_id, :session_id, :position, 'completed', :outcome, :agent, :channel, :recipient, :origin, :profile_revision,
        :limits, :timing, :started_seq, insika_now(), insika_now(), insika_now())
ON CONFLICT (id) DO UPDATE SET
  state = 'completed', outcome = excluded.outcome, agent = excluded.agent, channel = excluded.channel,
  recipient = excluded.recipient, origin = excluded.origin, profile_revision = excluded.profile_revision,
  limits = excluded.limits, timing = excluded.timing, started_seq = excluded.started_seq,
  started_at = excluded.started_at, ended_at = excluded.ended_at
WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
