-- Whatever is not there to be taken undoes all of it. A steer that was released has no turn yet; any other one was
-- queued when it was accepted.
WITH fence AS (
  UPDATE sessions SET
    log_seq    = log_seq + cardinality(%(positions)s::bigint[]),
    waiting    = waiting - cardinality(%(positions)s::bigint[]) - cardinality(%(refused)s::bigint[]),
    turn_id    = %(turn_id)s,
    turn_key   = %(steerable_key)s,
    deaths     = 0,
    parked_at  = NULL,
    parked_ms  = 0,
    load_from  = coalesce(%(load_from)s::bigint, load_from),
    merge_key  = CASE WHEN merge_turn = %(turn_id)s THEN NULL ELSE merge_key END,
    merge_turn = nullif(merge_turn, %(turn_id)s)
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id IS NULL AND NOT paused
    AND urgent_seq <= %(urgent)s AND (NOT %(merging)s OR mail_seq = %(mail)s)
    AND waiting >= cardinality(%(positions)s::bigint[]) + cardinality(%(refused)s::bigint[])
  RETURNING id, tenant, log_seq, epoch
),
taken AS (
  UPDATE mailbox AS m SET ended = 'turn', consumed_by = %(turn_id)s
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(positions)s::bigint[])
    AND m.ended IS NULL AND m.verdict <> 'control'
  RETURNING m.position, m.text
),
refused AS (
  UPDATE mailbox AS m SET ended = 'refused'
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(refused)s::bigint[])
    AND m.ended IS NULL AND m.verdict <> 'control'
  RETURNING m.position
),
turn AS (
  INSERT INTO turns (id, session_id, position, state, agent, channel, recipient, origin, profile_revision, limits,
                     started_seq, model, created_at, started_at)
  SELECT %(turn_id)s, id, (%(positions)s::bigint[])[1], 'running', %(agent)s, %(channel)s, %(recipient)s, %(origin)s,
         %(profile_revision)s, %(limits)s::json, log_seq - cardinality(%(positions)s::bigint[]) + 1, %(model)s,
         insika_now(), insika_now()
  FROM fence
  ON CONFLICT (id) DO UPDATE SET
    state = 'running', agent = excluded.agent, channel = excluded.channel, recipient = excluded.recipient,
    origin = excluded.origin, profile_revision = excluded.profile_revision, limits = excluded.limits,
    started_seq = excluded.started_seq, model = excluded.model, started_at = excluded.started_at
  WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
  RETURNING id
),
whole AS MATERIALIZED (
  SELECT * FROM fence
  WHERE CASE
    WHEN (SELECT count(*) FROM taken) = cardinality(%(positions)s::bigint[])
     AND (SELECT count(*) FROM refused) = cardinality(%(refused)s::bigint[])
     AND EXISTS (SELECT FROM turn)
    THEN true ELSE insika_undo('IN001', 'a message or the turn was not there to be taken') END
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT %(turn_id)s, %(call_step)s, %(call_attempt)s, %(call_purpose)s, id, tenant, %(agent)s, %(call_model)s,
         'open', insika_now()
  FROM whole
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, position, at)
  SELECT whole.id, whole.log_seq - cardinality(%(positions)s::bigint[]) + line.place, %(turn_id)s, whole.epoch, 0,
         'user', taken.text, taken.position, insika_now()
  FROM whole
  CROSS JOIN unnest(%(positions)s::bigint[]) WITH ORDINALITY AS line (position, place)
  JOIN taken ON taken.position = line.position
  ORDER BY line.place
),
raised AS MATERIALIZED (
  SELECT key FROM whole CROSS JOIN LATERAL insika_raise(%(alerts)s::json, %(turn_id)s) AS key
  WHERE %(alerts)s::text <> '[]'
)
SELECT log_seq, (SELECT array_agg(key) FROM raised) FROM whole
