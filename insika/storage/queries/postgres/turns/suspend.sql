-- What was decided counts as mail, so no decision comes between what the owner looked at and this. Which calls have begun
-- is asked once the session's lock is held.
WITH held AS MATERIALIZED (
  SELECT id FROM sessions
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls > 0
    AND mail_seq = %(mail)s AND urgent_seq <= %(urgent)s
  FOR NO KEY UPDATE
), open AS MATERIALIZED (
  SELECT c.state FROM held
  JOIN tool_calls AS c ON c.turn_id = %(turn_id)s AND c.state IN ('announced', 'started') FOR NO KEY UPDATE OF c
), asked AS MATERIALIZED (
  SELECT a.decision, a.expires_at FROM held JOIN approvals AS a ON a.turn_id = %(turn_id)s FOR NO KEY UPDATE OF a
), stands AS MATERIALIZED (
  SELECT held.id, (SELECT min(expires_at) FILTER (WHERE decision IS NULL) FROM asked) AS due_at
  FROM held WHERE NOT EXISTS (SELECT FROM open WHERE state = 'started')
), parked AS (
  UPDATE sessions AS s SET lease_id = NULL, lease_until = NULL, due_at = stands.due_at, parked_at = insika_now()
  FROM stands WHERE s.id = stands.id AND stands.due_at IS NOT NULL
  RETURNING s.turn_id
), waiting AS (
  UPDATE turns SET state = 'waiting' FROM parked WHERE turns.id = parked.turn_id
)
SELECT true FROM parked
