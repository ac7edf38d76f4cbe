-- As a start, but that the turn fails at once and none runs afterwards.
WITH fence AS (
  UPDATE sessions SET
    log_seq    = log_seq + cardinality(%(positions)s::bigint[]),
    waiting    = waiting - cardinality(%(positions)s::bigint[]),
    deaths     = 0,
    merge_key  = CASE WHEN merge_turn = %(turn_id)s THEN NULL ELSE merge_key END,
    merge_turn = nullif(merge_turn, %(turn_id)s)
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id IS NULL AND urgent_seq <= %(urgent)s
    AND (NOT %(merging)s OR mail_seq = %(mail)s) AND waiting >= cardinality(%(positions)s::bigint[])
  RETURNING id, log_seq, epoch
),
taken AS (
  UPDATE mailbox AS m SET ended = 'turn', consumed_by = %(turn_id)s
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(positions)s::bigint[])
    AND m.ended IS NULL AND m.verdict <> 'control'
  RETURNING m.position, m.text
),
turn AS (
  INSERT INTO turns (id, session_id, position, state, outcome, agent, channel, recipient, origin, error, started_seq,
                     created_at, started_at, ended_at)
  SELECT %(turn_id)s, id, (%(positions)s::bigint[])[1], 'failed', 'failed', %(agent)s, %(channel)s, %(recipient)s,
         %(origin)s, %(error)s::json, log_seq - cardinality(%(positions)s::bigint[]) + 1,
         insika_now(), insika_now(), insika_now()
  FROM fence
  ON CONFLICT (id) DO UPDATE SET
    state = 'failed', outcome = 'failed', error = excluded.error, started_seq = excluded.started_seq,
    started_at = excluded.started_at, ended_at = excluded.ended_at
  WHERE turns.state = 'queued' AND turns.session_id = excluded.session_id
  RETURNING id
),
whole AS MATERIALIZED (
  SELECT id, log_seq, epoch FROM fence
  WHERE CASE
    WHEN (SELECT count(*) FROM taken) = cardinality(%(positions)s::bigint[]) AND EXISTS (SELECT FROM turn)
    THEN true ELSE insika_undo('IN001', 'a message or the turn was not there to be taken') END
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
