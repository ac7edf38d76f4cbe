INSERT INTO turns (id, session_id, position, state, outcome, agent, channel, recipient, origin, error, started_seq,
                   created_at, started_at, ended_at)
VALUES (:turn_id, :session_id, :position, 'failed', 'failed', :agent, :channel, :recipient, :origin, :error, :started_seq,
        insika_now(), insika_now(), insika_now())
ON CONFLICT (id) DO UPDATE SET
  state = 'failed', outcome = 'failed', error = excluded.error, started_seq = excluded.started_seq,
  started_at = excluded.started_at, ended_at = excluded.ended_at
WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
