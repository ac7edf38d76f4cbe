-- The commit that closes an open batch first. `before` is what this statement saw, and the fence demands that the row
-- still says so. The lease goes with it when no mail has come since the owner looked: then `before` saw all there is.
WITH before AS MATERIALIZED (
  SELECT log_seq, open_calls,
         %(release_due)s::timestamptz IS NOT NULL
           AND NOT EXISTS (SELECT FROM mailbox AS m WHERE m.session_id = s.id AND m.ended IS NULL) AS lets_go
  FROM sessions AS s WHERE s.id = %(session_id)s
),
fence AS (
  UPDATE sessions AS s SET
    log_seq     = s.log_seq + s.open_calls + %(answers)s,
    lane_seq    = s.lane_seq + %(deliveries)s,
    turn_id     = NULL,
    turn_key    = NULL,
    open_calls  = 0,
    deaths      = 0,
    lease_id    = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0 THEN NULL ELSE s.lease_id END,
    lease_until = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0 THEN NULL ELSE s.lease_until END,
    due_at      = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0
                       THEN %(release_due)s::timestamptz ELSE s.due_at END
  FROM before
  WHERE s.id = %(session_id)s AND s.lease_id = %(lease_id)s AND s.turn_id = %(turn_id)s AND s.urgent_seq <= %(urgent)s
    AND s.log_seq = before.log_seq AND s.open_calls = before.open_calls AND s.open_calls > 0
  RETURNING s.id, s.log_seq, s.lane_seq, s.epoch, before.open_calls AS closing, s.lease_id IS NULL AS released
),
batch AS MATERIALIZED (
  SELECT c.step, c.idx, c.call_id, c.result IS NULL AS open, given.state, given.halts, given.approval,
         coalesce(c.result, given.content) AS content,
         CASE WHEN c.result IS NULL THEN given.is_error ELSE c.is_error END AS is_error
  FROM fence
  JOIN tool_calls AS c ON c.turn_id = %(turn_id)s
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
whole AS MATERIALIZED (
  SELECT * FROM fence
  WHERE CASE
    WHEN EXISTS (SELECT FROM batch WHERE content IS NULL)
    THEN insika_undo('IN002', (
      SELECT format('call %%s of step %%s is open and no result was given for it', call_id, step)
      FROM batch WHERE content IS NULL ORDER BY idx LIMIT 1))
    WHEN (SELECT count(*) FROM batch) = closing
     AND (SELECT count(*) FROM recorded) = (SELECT count(*) FROM batch WHERE open)
    THEN true ELSE insika_undo('IN001', 'a call was not there to be ended') END
),
settled AS (
  UPDATE model_calls AS m SET
    state = cost.state, input = cost.input, output = cost.output, cache_read = cost.cache_read,
    cache_write = cost.cache_write, settled_at = insika_now()
  FROM whole
  CROSS JOIN (VALUES
    (true, %(call_state)s::text, %(input)s::bigint, %(output)s::bigint, %(cache_read)s::bigint, %(cache_write)s::bigint),
    (false, 'estimated', 0, 0, 0, 0)
  ) AS cost (named, state, input, output, cache_read, cache_write)
  WHERE m.turn_id = %(turn_id)s
    AND cost.named = ((m.step, m.attempt, m.purpose)
      IS NOT DISTINCT FROM (%(call_step)s::integer, %(call_attempt)s::integer, %(call_purpose)s::text))
    AND CASE WHEN cost.named THEN m.state <> 'measured' ELSE m.state = 'open' END
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
completed AS (
  UPDATE turns SET
    state = 'completed', outcome = %(outcome)s, synthesized = %(synthesized)s,
    route = coalesce(%(route)s, route), model = coalesce(%(call_model)s, model),
    timing = %(timing)s::json, ended_at = insika_now()
  FROM whole WHERE turns.id = %(turn_id)s
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_call_id, is_error, batch_open, at)
  SELECT whole.id, whole.log_seq - whole.closing - %(answers)s + line.place, %(turn_id)s, whole.epoch, line.step,
         line.role, line.content, line.call_id, line.is_error, line.batch_open, insika_now()
  FROM whole
  CROSS JOIN LATERAL (
    SELECT idx + 1, step, 'tool', content, call_id, is_error, whole.closing - idx - 1 FROM batch
    UNION ALL
    SELECT whole.closing + 1, %(step)s, 'assistant', %(answer)s, NULL, false, 0 WHERE %(answers)s > 0
  ) AS line (place, step, role, content, call_id, is_error, batch_open)
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
)
SELECT released FROM whole
