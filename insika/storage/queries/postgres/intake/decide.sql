-- A decision about one approval, under its session's lock. Whether it was decided before is asked once that is held, and
-- whether its turn goes on is told by the session's row. What comes too late makes it expired.
WITH held AS MATERIALIZED (
  SELECT id, turn_id FROM sessions
  WHERE id = (SELECT session_id FROM approvals WHERE id = %(approval_id)s) FOR NO KEY UPDATE
), aimed AS MATERIALIZED (
  SELECT a.*, a.decision IS NULL AND held.turn_id IS NOT DISTINCT FROM a.turn_id AS open
  FROM held JOIN approvals AS a ON a.id = %(approval_id)s AND a.session_id = held.id FOR NO KEY UPDATE OF a
), timed AS MATERIALIZED (
  SELECT *, insika_now() AS now FROM aimed
), ruled AS MATERIALIZED (
  SELECT *, open AND expires_at > now AS won FROM timed
), decided AS (
  UPDATE approvals AS a SET
    decision   = CASE WHEN r.won THEN %(decision)s ELSE 'expired' END,
    decided_by = CASE WHEN r.won THEN %(by)s END,
    reason     = CASE WHEN r.won THEN %(reason)s END,
    decided_at = r.now
  FROM ruled AS r WHERE a.id = r.id AND r.open
  RETURNING a.id, a.session_id, a.decision, a.decided_by, a.reason, a.decided_at
), counted AS (
  UPDATE sessions AS s SET mail_seq = s.mail_seq + 1, due_at = '-infinity' FROM decided AS d WHERE s.id = d.session_id
)
SELECT r.id, r.turn_id, r.session_id, r.call_id, r.tool, r.arguments_hash, r.asked_at, r.expires_at,
       coalesce(d.decision, r.decision), coalesce(d.decided_by, r.decided_by), coalesce(d.reason, r.reason),
       coalesce(d.decided_at, r.decided_at), r.won
FROM ruled AS r LEFT JOIN decided AS d ON true
