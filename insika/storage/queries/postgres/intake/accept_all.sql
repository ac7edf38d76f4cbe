-- What `accept` does, for jobs of as many sessions: none may be named twice. It waits for nobody who has one of the
-- sessions, since it would hold the others meanwhile. A job that gets no place here is one for `accept`.
WITH job AS MATERIALIZED (
  SELECT j.*, (SELECT s.id FROM sessions AS s WHERE s.tenant = j.tenant AND s.name = j.session) AS id
  FROM json_to_recordset(%(jobs)s::json) AS j (
    place int, tenant text, session text, job_id text, digest text, new_turn text, text text, agent text, key text,
    asked text, default_mode text, channel text, recipient text, origin text, customer text, sent_at timestamptz,
    debounce_ms bigint, debounce_max_ms bigint, mailbox_max bigint, first_vars jsonb, new_vars bool, set_vars jsonb,
    cleared_vars text[])
), held AS MATERIALIZED (
  SELECT s.id, s.mail_seq, s.waiting, s.turn_id, s.turn_key, s.merge_turn, s.merge_key, s.vars FROM sessions AS s
  WHERE s.id = ANY (ARRAY(SELECT id FROM job)) ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED
), asked AS MATERIALIZED (
  SELECT job.*, held.turn_id, held.turn_key, held.merge_turn, held.merge_key, insika_now() AS now,
         coalesce(held.mail_seq, 0) AS mail_seq, coalesce(held.waiting, 0) AS waiting, v.vars,
         CASE WHEN origin <> 'customer' THEN 'followup'
              ELSE coalesce(asked, nullif(v.vars ->> 'queue_mode', ''), default_mode) END AS mode
  FROM job LEFT JOIN held USING (id)
  CROSS JOIN LATERAL (SELECT CASE WHEN id IS NULL THEN first_vars
                                  ELSE (held.vars || set_vars) - cleared_vars END AS vars) AS v
  WHERE id IS NULL OR held.mail_seq IS NOT NULL
), decided AS MATERIALIZED (
  SELECT *, mode = 'collect' OR (mode = 'steer' AND debounce_ms > 0) AS collects,
         CASE WHEN waiting >= mailbox_max THEN 'rejected'
              WHEN mode = 'interrupt' AND turn_id IS NOT NULL THEN 'interrupting'
              WHEN mode = 'steer' AND turn_key = key THEN 'steered'
              WHEN (mode = 'collect' OR (mode = 'steer' AND debounce_ms > 0)) AND merge_key = key THEN 'merged'
              ELSE 'accepted' END AS verdict
  FROM asked
), ready AS MATERIALIZED (
  SELECT *, CASE verdict WHEN 'steered' THEN turn_id WHEN 'merged' THEN merge_turn ELSE new_turn END AS for_turn,
         CASE verdict WHEN 'interrupting' THEN turn_id END AS cuts,
         collects AND key IS NOT NULL AND verdict IN ('accepted', 'merged') AS merges
  FROM decided WHERE verdict <> 'rejected'
), born AS (
  INSERT INTO sessions (tenant, name, mail_seq, waiting, merge_turn, merge_key, vars, due_at)
  SELECT tenant, session, 1, 1, CASE WHEN merges THEN for_turn END, CASE WHEN merges THEN key END, vars,
         CASE WHEN merges AND debounce_ms > 0 THEN now + debounce_ms * interval '1 ms' ELSE '-infinity' END
  FROM ready WHERE id IS NULL ORDER BY tenant COLLATE "C", session COLLATE "C"
  ON CONFLICT DO NOTHING RETURNING id, tenant, name
), here AS MATERIALIZED (
  SELECT ready.*, coalesce(ready.id, born.id) AS session_id, mail_seq + 1 AS position
  FROM ready LEFT JOIN born ON born.tenant = ready.tenant AND born.name = ready.session
  WHERE ready.id IS NOT NULL OR born.id IS NOT NULL
), remembered AS (
  INSERT INTO job_ids AS known (session_id, job_id, digest, seen_at, position, turn_id)
  SELECT session_id, job_id, digest, now, position, for_turn FROM here
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
    merge_turn = CASE WHEN p.merges THEN p.for_turn END,
    merge_key  = CASE WHEN p.merges THEN p.key END,
    vars       = CASE WHEN p.new_vars THEN p.vars ELSE s.vars END,
    due_at     = least(s.due_at, CASE WHEN p.merges AND p.debounce_ms > 0
                                      THEN p.now + p.debounce_ms * interval '1 ms' ELSE '-infinity' END)
  FROM placed AS p WHERE s.id = p.id
), queued AS (
  INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, created_at)
  SELECT for_turn, session_id, position, 'queued', agent, channel, recipient, origin, now
  FROM placed WHERE verdict IN ('accepted', 'interrupting') ORDER BY place
), mailed AS (
  INSERT INTO mailbox (session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms,
                       debounce_max_ms, agent, channel, recipient, origin, customer, sent_at)
  SELECT session_id, position, job_id, mode, key, text, now, verdict, for_turn, cuts, debounce_ms, debounce_max_ms,
         agent, channel, recipient, origin, customer, sent_at
  FROM placed ORDER BY place
)
SELECT place, session_id, verdict, for_turn, position FROM placed
