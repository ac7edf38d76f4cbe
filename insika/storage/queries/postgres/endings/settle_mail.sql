WITH fence AS (
  UPDATE sessions SET
    waiting    = waiting - cardinality(%(positions)s::bigint[]),
    controls   = controls - cardinality(%(control)s::bigint[]),
    turn_key   = CASE WHEN turn_id IS NOT NULL AND %(steerable_key)s::text IS NOT NULL AND urgent_seq <= %(urgent)s
                      THEN %(steerable_key)s ELSE turn_key END,
    lane_seq   = lane_seq + %(deliveries)s,
    merge_key  = CASE WHEN merge_turn = %(turn_id)s THEN NULL ELSE merge_key END,
    merge_turn = nullif(merge_turn, %(turn_id)s)
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND (NOT %(merging)s OR mail_seq = %(mail)s)
    AND waiting >= cardinality(%(positions)s::bigint[]) AND controls >= cardinality(%(control)s::bigint[])
  RETURNING id, lane_seq
),
ended AS (
  UPDATE mailbox AS m SET ended = CASE WHEN m.verdict = 'control' THEN 'control' ELSE %(how)s END
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(positions)s::bigint[] || %(control)s::bigint[])
    AND m.ended IS NULL AND (m.verdict = 'control') = (m.position = ANY(%(control)s::bigint[]))
  RETURNING m.position
),
turn AS (
  UPDATE turns SET
    state = %(state)s, outcome = CASE WHEN %(state)s IN ('cancelled', 'refused') THEN %(state)s END, ended_at = insika_now()
  FROM fence
  WHERE turns.id = %(turn_id)s AND turns.session_id = fence.id AND turns.state = 'queued'
  RETURNING turns.id, fence.id AS session_id, fence.lane_seq
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM turn WHERE m.turn_id = turn.id AND m.state = 'open'
),
sent AS (
  INSERT INTO outbox (id, session_id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
                      max_attempts, timeout_s, order_wait_s, unique_key, due_at, created_at)
  SELECT 'msg_' || lpad(to_hex((extract(epoch FROM insika_now()) * 1000000)::bigint + d.place - 1), 14, '0') || d.salt,
         turn.session_id, turn.id, d.kind, d.channel, d.lane, turn.lane_seq - %(deliveries)s + d.place, d.recipient,
         d.payload, d.url, d.guarantee, d.max_attempts, d.timeout_s, d.order_wait_s, d.unique_key,
         insika_now(), insika_now()
  FROM turn
  CROSS JOIN ROWS FROM (
    json_to_recordset(%(new_deliveries)s::json) AS (
      salt text, kind text, channel text, lane text, recipient text, payload json, url text, guarantee text,
      max_attempts integer, timeout_s double precision, order_wait_s double precision, unique_key text)
  ) WITH ORDINALITY AS d (salt, kind, channel, lane, recipient, payload, url, guarantee, max_attempts, timeout_s,
                          order_wait_s, unique_key, place)
  ON CONFLICT (unique_key) DO NOTHING
)
SELECT true FROM fence
WHERE CASE
  WHEN (SELECT count(*) FROM ended) = cardinality(%(positions)s::bigint[]) + cardinality(%(control)s::bigint[])
   AND (%(turn_id)s IS NULL OR EXISTS (SELECT FROM turn))
  THEN true ELSE insika_undo('IN001', 'a message or the turn was not there to be ended') END
