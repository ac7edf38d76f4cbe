-- A control message that asks for one message back, placed under its session's lock; whether that one has ended is asked
-- once the lock is held. A NULL position: nothing was written, for it has ended or the same request is known.
WITH held AS MATERIALIZED (
  SELECT id, mail_seq + 1 AS position FROM sessions WHERE tenant = %(tenant)s AND name = %(session)s FOR NO KEY UPDATE
), known AS MATERIALIZED (
  SELECT held.id AS session_id, held.position, k.position AS target
  FROM held JOIN job_ids AS k ON k.session_id = held.id AND k.job_id = %(job_id)s AND NOT k.control
), aimed AS MATERIALIZED (
  SELECT known.*, m.ended, m.consumed_by, m.turn_id, m.agent, m.channel, m.recipient, m.origin
  FROM known JOIN mailbox AS m ON m.session_id = known.session_id AND m.position = known.target FOR NO KEY UPDATE OF m
), timed AS MATERIALIZED (
  SELECT *, insika_now() AS now FROM aimed WHERE ended IS NULL
), remembered AS (
  INSERT INTO job_ids AS requests (session_id, job_id, control, digest, seen_at, position, turn_id)
  SELECT session_id, %(request_id)s, true, target::text, now, position, turn_id FROM timed
  ON CONFLICT (session_id, job_id, control) DO UPDATE SET
    digest = excluded.digest, seen_at = excluded.seen_at, position = excluded.position, turn_id = excluded.turn_id
  WHERE requests.digest <> excluded.digest OR requests.seen_at <= excluded.seen_at - interval '24 hours'
  RETURNING session_id
), placed AS MATERIALIZED (
  SELECT timed.* FROM timed JOIN remembered USING (session_id)
), counted AS (
  UPDATE sessions AS s SET mail_seq = p.position, controls = s.controls + 1, due_at = '-infinity'
  FROM placed AS p WHERE s.id = p.session_id
), mailed AS (
  INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, withdraws, agent, channel, recipient,
                       origin)
  SELECT session_id, position, %(request_id)s, 'withdraw', '', now, 'control', turn_id, target, agent, channel, recipient,
         origin
  FROM placed
)
SELECT aimed.session_id, aimed.target, placed.position, aimed.ended, aimed.consumed_by FROM aimed LEFT JOIN placed ON true
