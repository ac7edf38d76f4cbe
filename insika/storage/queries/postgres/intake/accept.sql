-- A job's verdict and its place, from the columns of the session row under its lock. No row: another's first contact
-- made the session at this moment; say it again. A NULL verdict: the id is known. Then, and when it is `rejected`,
-- nothing was written; no table but the session's is asked here, for it would be seen as it was before the lock.
WITH held AS MATERIALIZED (
  SELECT id, mail_seq, waiting, turn_id, turn_key, merge_turn, merge_key,
         (vars || %(set_vars)s::jsonb) - %(cleared_vars)s::text[] AS vars
  FROM sessions WHERE tenant = %(tenant)s AND name = %(session)s FOR NO KEY UPDATE
), met AS MATERIALIZED (
  SELECT *, false AS first FROM held
  UNION ALL
  SELECT NULL, 0, 0, NULL, NULL, NULL, NULL, %(first_vars)s::jsonb, true WHERE NOT EXISTS (SELECT 1 FROM held)
), asked AS MATERIALIZED (
  SELECT *, insika_now() AS now,
         CASE WHEN %(origin)s <> 'customer' THEN 'followup'
              ELSE coalesce(%(mode)s, nullif(vars ->> 'queue_mode', ''), %(default_mode)s) END AS mode
  FROM met
), decided AS MATERIALIZED (
  SELECT *,
         CASE WHEN waiting >= %(mailbox_max)s THEN 'rejected'
              WHEN mode = 'interrupt' AND turn_id IS NOT NULL THEN 'interrupting'
              WHEN mode = 'steer' AND turn_key = %(key)s THEN 'steered'
              WHEN (mode = 'collect' OR (mode = 'steer' AND %(debounce_ms)s > 0)) AND merge_key = %(key)s THEN 'merged'
              ELSE 'accepted' END AS verdict
  FROM asked
), aimed AS MATERIALIZED (
  SELECT *,
         CASE verdict WHEN 'steered' THEN turn_id WHEN 'merged' THEN merge_turn ELSE %(turn_id)s END AS for_turn,
         CASE verdict WHEN 'interrupting' THEN turn_id END AS cuts,
         verdict IN ('accepted', 'merged') AND %(key)s::text IS NOT NULL
           AND (mode = 'collect' OR (mode = 'steer' AND %(debounce_ms)s > 0)) AS merges
  FROM decided
), ready AS MATERIALIZED (
  SELECT *, verdict <> 'rejected' AS taken,
         CASE WHEN merges THEN for_turn END AS next_merge_turn,
         CASE WHEN merges THEN %(key)s END AS next_merge_key,
         CASE WHEN merges AND %(debounce_ms)s > 0
              THEN now + %(debounce_ms)s * interval '1 ms' ELSE '-infinity' END AS due
  FROM aimed
), born AS (
  INSERT INTO sessions (tenant, name, mail_seq, waiting, merge_turn, merge_key, vars, due_at)
  SELECT %(tenant)s, %(session)s, taken::int, taken::int, next_merge_turn, next_merge_key, vars,
         CASE WHEN taken THEN due ELSE 'infinity' END
  FROM ready WHERE first
  ON CONFLICT DO NOTHING RETURNING id
), here AS MATERIALIZED (
  SELECT coalesce(ready.id, born.id) AS session_id, ready.mail_seq + 1 AS position, ready.*
  FROM ready LEFT JOIN born ON true WHERE NOT ready.first OR born.id IS NOT NULL
), remembered AS (
  INSERT INTO job_ids AS known (session_id, job_id, digest, seen_at, position, turn_id)
  SELECT session_id, %(job_id)s, %(digest)s, now, position, for_turn FROM here WHERE taken
  ON CONFLICT (session_id, job_id, control) DO UPDATE SET
    digest = excluded.digest, seen_at = excluded.seen_at, position = excluded.position, turn_id = excluded.turn_id
  WHERE known.seen_at <= excluded.seen_at - interval '24 hours'
  RETURNING session_id
), placed AS MATERIALIZED (
  SELECT here.* FROM here JOIN remembered USING (session_id)
), counted AS (
  UPDATE sessions AS s SET
    mail_seq   = p.position,
    waiting    = s.waiting + 1,
    urgent_seq = CASE WHEN p.cuts IS NULL THEN s.urgent_seq ELSE p.position END,
    turn_key   = CASE WHEN p.cuts IS NULL THEN s.turn_key END,
    merge_turn = p.next_merge_turn,
    merge_key  = p.next_merge_key,
    vars       = CASE WHEN %(new_vars)s THEN p.vars ELSE s.vars END,
    due_at     = least(s.due_at, p.due)
  FROM placed AS p WHERE s.id = p.session_id AND NOT p.first
), queued AS (
  INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, created_at)
  SELECT for_turn, session_id, position, 'queued', %(agent)s, %(channel)s, %(recipient)s, %(origin)s, now
  FROM placed WHERE verdict IN ('accepted', 'interrupting')
), mailed AS (
  INSERT INTO mailbox (session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms,
                       debounce_max_ms, agent, channel, recipient, origin, customer, sent_at)
  SELECT session_id, position, %(job_id)s, mode, %(key)s, %(text)s, now, verdict, for_turn, cuts, %(debounce_ms)s,
         %(debounce_max_ms)s, %(agent)s, %(channel)s, %(recipient)s, %(origin)s, %(customer)s, %(sent_at)s::timestamptz
  FROM placed
)
SELECT here.session_id, CASE WHEN here.taken THEN placed.verdict ELSE 'rejected' END, placed.for_turn, placed.position,
       here.waiting
FROM here LEFT JOIN placed USING (session_id)
