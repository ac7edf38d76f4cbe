-- A control message for one turn, placed under its session's lock; which state the turn is in is asked once that is held.
-- A NULL position: nothing was written, for the turn has ended or the same request is known.
WITH held AS MATERIALIZED (
  SELECT id, mail_seq + 1 AS position FROM sessions
  WHERE id = (SELECT session_id FROM turns WHERE id = %(turn_id)s) FOR NO KEY UPDATE
), aimed AS MATERIALIZED (
  SELECT held.id AS session_id, held.position, t.id AS turn_id, t.state, t.agent, t.channel, t.recipient, t.origin
  FROM held JOIN turns AS t ON t.id = %(turn_id)s AND t.session_id = held.id FOR NO KEY UPDATE OF t
), timed AS MATERIALIZED (
  SELECT *, insika_now() AS now FROM aimed WHERE state NOT IN ('completed', 'failed', 'cancelled', 'refused')
), remembered AS (
  INSERT INTO job_ids AS known (session_id, job_id, control, digest, seen_at, position, turn_id)
  SELECT session_id, %(request_id)s, true, turn_id, now, position, turn_id FROM timed
  ON CONFLICT (session_id, job_id, control) DO UPDATE SET
    digest = excluded.digest, seen_at = excluded.seen_at, position = excluded.position, turn_id = excluded.turn_id
  WHERE known.digest <> excluded.digest OR known.seen_at <= excluded.seen_at - interval '24 hours'
  RETURNING session_id
), placed AS MATERIALIZED (
  SELECT timed.* FROM timed JOIN remembered USING (session_id)
), counted AS (
  UPDATE sessions AS s SET
    mail_seq   = p.position,
    urgent_seq = p.position,
    controls   = s.controls + 1,
    turn_key   = CASE WHEN s.turn_id = p.turn_id THEN NULL ELSE s.turn_key END,
    merge_key  = CASE WHEN s.merge_turn = p.turn_id THEN NULL ELSE s.merge_key END,
    merge_turn = nullif(s.merge_turn, p.turn_id),
    due_at     = '-infinity'
  FROM placed AS p WHERE s.id = p.session_id
), mailed AS (
  INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, cuts, agent, channel, recipient, origin)
  SELECT session_id, position, %(request_id)s, 'cancel', '', now, 'control', turn_id, turn_id, agent, channel, recipient, origin
  FROM placed
)
SELECT aimed.session_id, aimed.state, placed.position FROM aimed LEFT JOIN placed ON true
