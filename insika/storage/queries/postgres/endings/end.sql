-- Ending a turn demands nothing but the lease, and that the row still says what this statement saw in `before`.
WITH before AS MATERIALIZED (
  SELECT log_seq, open_calls FROM sessions WHERE id = %(session_id)s
),
fence AS (
  UPDATE sessions AS s SET
    log_seq    = s.log_seq + s.open_calls,
    lane_seq   = s.lane_seq + %(deliveries)s,
    turn_id    = NULL,
    turn_key   = NULL,
    open_calls = 0,
    controls   = s.controls - cardinality(%(control)s::bigint[]),
    deaths     = 0
  FROM before
  WHERE s.id = %(session_id)s AND s.lease_id = %(lease_id)s AND s.turn_id = %(turn_id)s
    AND s.log_seq = before.log_seq AND s.open_calls = before.open_calls
    AND s.controls >= cardinality(%(control)s::bigint[])
  RETURNING s.id, s.log_seq, s.lane_seq, s.epoch, before.open_calls AS closing
),
batch AS MATERIALIZED (
  SELECT c.step, c.idx, c.call_id, c.result IS NULL AS open, given.state, given.halts, given.approval,
         coalesce(c.result, given.content) AS content,
         CASE WHEN c.result IS NULL THEN given.is_error ELSE c.is_error END AS is_error
  FROM fence
  JOIN tool_calls AS c ON fence.closing > 0 AND c.turn_id = %(turn_id)s
    AND c.step = (SELECT max(step) FROM tool_calls WHERE turn_id = %(turn_id)s)
  LEFT JOIN json_to_recordset(%(given)s::json)
    AS given (idx integer, call_id text, state text, content text, is_error boolean, halts boolean,
              approval text)
    ON given.idx = c.idx AND given.call_id = c.call_id
),
recorded AS (
  UPDATE tool_calls AS c SET
    state = batch.state, result = batch.content, is_error = batch.is_error, halts = batch.halts, ended_at = insika_now()
  FROM batch
  WHERE c.turn_id = %(turn_id)s AND c.step = batch.step AND c.idx = batch.idx AND batch.open
    AND c.state IN ('announced', 'started')
  RETURNING c.idx, c.call_id, batch.approval, c.started_at IS NULL AS unused
),
honoured AS (
  UPDATE mailbox AS m SET ended = 'control'
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(control)s::bigint[]) AND m.ended IS NULL AND m.verdict = 'control'
  RETURNING m.position
),
whole AS MATERIALIZED (
  SELECT * FROM fence
  WHERE CASE
    WHEN EXISTS (SELECT FROM batch WHERE content IS NULL)
    THEN insika_undo('IN002', (
      SELECT format('call %%s of step %%s is open and no result was given for it', call_id, step)
      FROM batch WHERE content IS NULL ORDER BY idx LIMIT 1))
    WHEN (SELECT count(*) FROM batch) = closing
     AND (SELECT count(*) FROM recorded) = (SELECT count(*) FROM batch WHERE open)
     AND (SELECT count(*) FROM honoured) = cardinality(%(control)s::bigint[])
    THEN true ELSE insika_undo('IN001', 'a message or a call was not there to be ended') END
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM whole WHERE m.turn_id = %(turn_id)s AND m.state = 'open'
),
voided AS (
  UPDATE approvals AS a SET
    decision = coalesce(unused.becomes ->> a.call_id, 'void'), decided_at = coalesce(a.decided_at, insika_now())
  FROM whole
  CROSS JOIN (
    SELECT jsonb_object_agg(call_id, coalesce(approval, 'void')) FILTER (WHERE unused) AS becomes FROM recorded
  ) AS unused
  WHERE a.turn_id = %(turn_id)s AND (a.decision IS NULL OR (a.decision = 'approved' AND unused.becomes ? a.call_id))
),
ended AS (
  UPDATE turns SET
    state = %(state)s, outcome = %(outcome)s, error = %(error)s::json, timing = %(timing)s::json, ended_at = insika_now()
  FROM whole WHERE turns.id = %(turn_id)s
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_call_id, is_error, batch_open, at)
  SELECT whole.id, whole.log_seq - whole.closing + batch.idx + 1, %(turn_id)s, whole.epoch, batch.step,
         'tool', batch.content, batch.call_id, batch.is_error, whole.closing - batch.idx - 1, insika_now()
  FROM whole
  CROSS JOIN batch
  ORDER BY batch.idx
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
)
SELECT true FROM whole
