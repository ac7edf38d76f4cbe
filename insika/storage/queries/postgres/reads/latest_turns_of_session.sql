-- The newest first.
SELECT id, session_id, position, state, outcome, attempt, agent, channel, recipient, origin, profile_revision, limits,
       synthesized, route, timing, error, started_seq, created_at, started_at, ended_at, model, depth,
       routes
FROM turns WHERE session_id = %(session_id)s ORDER BY number DESC LIMIT %(limit)s
