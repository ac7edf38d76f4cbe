-- The commit of a turn whose last batch is closed. The lease goes with it when no mail has come since the owner looked:
-- then all mail there is was there when this statement began, and what it sees of the mailbox is so. Where nothing was
-- written, it tells whether that was for a batch that had been open by then.
WITH before AS MATERIALIZED (
  SELECT s.open_calls > 0 AS batch_open,
         %(release_due)s::timestamptz IS NOT NULL
           AND NOT EXISTS (SELECT FROM mailbox AS m WHERE m.session_id = s.id AND m.ended IS NULL) AS lets_go
  FROM sessions AS s WHERE s.id = %(session_id)s
),
fence AS (
  UPDATE sessions AS s SET
    log_seq     = s.log_seq + %(answers)s,
    lane_seq    = s.lane_seq + %(deliveries)s,
    turn_id     = NULL,
    turn_key    = NULL,
    deaths      = 0,
    lease_id    = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0 THEN NULL ELSE s.lease_id END,
    lease_until = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0 THEN NULL ELSE s.lease_until END,
    due_at      = CASE WHEN before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0
                       THEN %(release_due)s::timestamptz ELSE s.due_at END
  FROM before
  WHERE s.id = %(session_id)s AND s.lease_id = %(lease_id)s AND s.turn_id = %(turn_id)s AND s.open_calls = 0
    AND s.urgent_seq <= %(urgent)s
  RETURNING s.id, s.log_seq, s.lane_seq, s.epoch, s.lease_id IS NULL AS released
),
settled AS (
  UPDATE model_calls AS m SET
    state = cost.state, input = cost.input, output = cost.output, cache_read = cost.cache_read,
    cache_write = cost.cache_write, settled_at = insika_now()
  FROM fence
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
  UPDATE approvals AS a SET decision = 'void', decided_at = insika_now()
  -- Written so that the index of all open ones, however many, looks like no way to this turn's.
  FROM fence WHERE a.turn_id = %(turn_id)s AND coalesce(a.decision, '') = ''
),
completed AS (
  UPDATE turns SET
    state = 'completed', outcome = %(outcome)s, synthesized = %(synthesized)s,
    route = coalesce(%(route)s, route), model = coalesce(%(call_model)s, model),
    timing = %(timing)s::json, ended_at = insika_now()
  FROM fence WHERE turns.id = %(turn_id)s
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, at)
  SELECT id, log_seq, %(turn_id)s, epoch, %(step)s, 'assistant', %(answer)s, insika_now()
  FROM fence WHERE %(answers)s > 0
),
sent AS (
  INSERT INTO outbox (id, session_id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
                      max_attempts, timeout_s, order_wait_s, unique_key, due_at, created_at)
  SELECT 'msg_' || lpad(to_hex((extract(epoch FROM insika_now()) * 1000000)::bigint + d.place - 1), 14, '0') || d.salt,
         fence.id, %(turn_id)s, d.kind, d.channel, d.lane, fence.lane_seq - %(deliveries)s + d.place, d.recipient,
         d.payload, d.url, d.guarantee, d.max_attempts, d.timeout_s, d.order_wait_s, d.unique_key,
         insika_now(), insika_now()
  FROM fence
  CROSS JOIN ROWS FROM (
    json_to_recordset(%(new_deliveries)s::json) AS (
      salt text, kind text, channel text, lane text, recipient text, payload json, url text, guarantee text,
      max_attempts integer, timeout_s double precision, order_wait_s double precision, unique_key text)
  ) WITH ORDINALITY AS d (salt, kind, channel, lane, recipient, payload, url, guarantee, max_attempts, timeout_s,
                          order_wait_s, unique_key, place)
  ON CONFLICT (unique_key) DO NOTHING
)
SELECT fence.released, before.batch_open FROM before LEFT JOIN fence ON true
