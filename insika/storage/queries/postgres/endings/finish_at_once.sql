-- As a start, but that the turn is complete at once, with an answer, and none runs afterwards.
WITH fence AS (
  UPDATE sessions SET
    log_seq    = log_seq + cardinality(%(positions)s::bigint[]) + %(answers)s,
    lane_seq   = lane_seq + %(deliveries)s,
    waiting    = waiting - cardinality(%(positions)s::bigint[]) - cardinality(%(refused)s::bigint[]),
    deaths     = 0,
    merge_key  = CASE WHEN merge_turn = %(turn_id)s THEN NULL ELSE merge_key END,
    merge_turn = nullif(merge_turn, %(turn_id)s)
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id IS NULL AND NOT paused
    AND urgent_seq <= %(urgent)s AND (NOT %(merging)s OR mail_seq = %(mail)s)
    AND waiting >= cardinality(%(positions)s::bigint[]) + cardinality(%(refused)s::bigint[])
  RETURNING id, log_seq, lane_seq, epoch, log_seq - cardinality(%(positions)s::bigint[]) - %(answers)s AS before
),
ended AS (
  UPDATE mailbox AS m SET
    ended       = CASE WHEN m.position = ANY(%(positions)s::bigint[]) THEN 'turn' ELSE 'refused' END,
    consumed_by = CASE WHEN m.position = ANY(%(positions)s::bigint[]) THEN %(turn_id)s END
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(positions)s::bigint[] || %(refused)s::bigint[])
    AND m.ended IS NULL AND m.verdict <> 'control'
  RETURNING m.position, m.text
),
turn AS (
  INSERT INTO turns (id, session_id, position, state, outcome, agent, channel, recipient, origin, profile_revision, limits,
                     timing, started_seq, created_at, started_at, ended_at)
  SELECT %(turn_id)s, id, (%(positions)s::bigint[])[1], 'completed', %(outcome)s, %(agent)s, %(channel)s, %(recipient)s,
         %(origin)s, %(profile_revision)s, %(limits)s::json, %(timing)s::json, before + 1,
         insika_now(), insika_now(), insika_now()
  FROM fence
  ON CONFLICT (id) DO UPDATE SET
    state = 'completed', outcome = excluded.outcome, agent = excluded.agent, channel = excluded.channel,
    recipient = excluded.recipient, origin = excluded.origin, profile_revision = excluded.profile_revision,
    limits = excluded.limits, timing = excluded.timing, started_seq = excluded.started_seq,
    started_at = excluded.started_at, ended_at = excluded.ended_at
  WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
  RETURNING id
),
whole AS MATERIALIZED (
  SELECT * FROM fence
  WHERE CASE
    WHEN (SELECT count(*) FROM ended) = cardinality(%(positions)s::bigint[]) + cardinality(%(refused)s::bigint[])
     AND EXISTS (SELECT FROM turn)
    THEN true ELSE insika_undo('IN001', 'a message or the turn was not there to be taken') END
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, position, at)
  SELECT whole.id, whole.before + line.place, %(turn_id)s, whole.epoch, line.step, line.role, line.content,
         line.position, insika_now()
  FROM whole
  CROSS JOIN (
    SELECT asked.place, 0, 'user', ended.text, ended.position
    FROM unnest(%(positions)s::bigint[]) WITH ORDINALITY AS asked (position, place)
    JOIN ended ON ended.position = asked.position
    UNION ALL
    SELECT cardinality(%(positions)s::bigint[]) + 1, 1, 'assistant', %(answer)s, NULL WHERE %(answers)s > 0
  ) AS line (place, step, role, content, position)
  ORDER BY line.place
),
sent AS (
  INSERT INTO outbox (id, session_id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
                      max_attempts, timeout_s, order_wait_s, unique_key, due_at, created_at)
  SELECT 'msg_' || lpad(to_hex((extract(epoch FROM insika_now()) * 1000000)::bigint + d.place - 1), 14, '0') || d.salt,
         whole.id, %(turn_id)s, d.kind, d.channel, d.lane, whole.lane_seq - %(deliveries)s + d.place, d.recipient,
         d.payload, d.url, d.guarantee, d.max_attempts, d.timeout_s, d.order_wait_s, d.unique_key,
         insika_now(), insika_now()
  FROM whole
  CROSS JOIN ROWS FROM (
    json_to_recordset(%(new_deliveries)s::json) AS (
      salt text, kind text, channel text, lane text, recipient text, payload json, url text, guarantee text,
      max_attempts integer, timeout_s double precision, order_wait_s double precision, unique_key text)
  ) WITH ORDINALITY AS d (salt, kind, channel, lane, recipient, payload, url, guarantee, max_attempts, timeout_s,
                          order_wait_s, unique_key, place)
  ON CONFLICT (unique_key) DO NOTHING
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM whole WHERE m.turn_id = %(turn_id)s AND m.state = 'open'
),
raised AS MATERIALIZED (
  SELECT key FROM whole CROSS JOIN LATERAL insika_raise(%(alerts)s::json, %(turn_id)s) AS key
  WHERE %(alerts)s::text <> '[]'
)
SELECT log_seq, (SELECT array_agg(key) FROM raised) FROM whole
