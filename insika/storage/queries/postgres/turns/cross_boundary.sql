-- A call that changed while this statement waited for its row undoes all of it; one that was never answered is the
-- caller's mistake.
WITH fence AS (
  UPDATE sessions SET
    log_seq    = log_seq + %(results)s + %(added)s,
    open_calls = 0,
    waiting    = waiting - cardinality(%(absorbed)s::bigint[]) - cardinality(%(refused)s::bigint[]),
    turn_key   = CASE WHEN %(takes_steers)s THEN turn_key END
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls = %(results)s
    AND urgent_seq <= %(urgent)s AND (NOT %(nothing_unseen)s OR mail_seq = %(mail)s)
    AND waiting >= cardinality(%(absorbed)s::bigint[]) + cardinality(%(refused)s::bigint[])
  RETURNING id, tenant, log_seq, epoch
),
batch AS MATERIALIZED (
  SELECT c.idx, c.call_id, c.result IS NULL AS open, given.state, given.halts, given.approval,
         coalesce(c.result, given.content) AS content,
         CASE WHEN c.result IS NULL THEN given.is_error ELSE c.is_error END AS is_error
  FROM fence
  JOIN tool_calls AS c ON c.turn_id = %(turn_id)s AND c.step = %(step)s
  LEFT JOIN json_to_recordset(%(given)s::json)
    AS given (idx integer, call_id text, state text, content text, is_error boolean, halts boolean,
              approval text)
    ON given.idx = c.idx AND given.call_id = c.call_id
),
recorded AS (
  UPDATE tool_calls AS c SET
    state = batch.state, result = batch.content, is_error = batch.is_error, halts = batch.halts, ended_at = insika_now()
  FROM batch
  WHERE c.turn_id = %(turn_id)s AND c.step = %(step)s AND c.idx = batch.idx AND batch.open
    AND c.state IN ('announced', 'started')
  RETURNING c.idx, c.call_id, batch.approval, c.started_at IS NULL AS unused
),
given_up AS (
  UPDATE approvals AS a SET decision = recorded.approval, decided_at = coalesce(a.decided_at, insika_now())
  FROM recorded
  WHERE recorded.unused AND recorded.approval IS NOT NULL AND a.turn_id = %(turn_id)s AND a.call_id = recorded.call_id
    AND (a.decision IS NULL OR a.decision = 'approved')
),
ended AS (
  UPDATE mailbox AS m SET
    ended       = CASE WHEN m.position = ANY(%(absorbed)s::bigint[]) THEN 'turn' ELSE 'refused' END,
    consumed_by = CASE WHEN m.position = ANY(%(absorbed)s::bigint[]) THEN %(turn_id)s END
  FROM fence
  WHERE m.session_id = fence.id AND m.position = ANY(%(absorbed)s::bigint[] || %(refused)s::bigint[])
    AND m.ended IS NULL AND m.verdict <> 'control'
  RETURNING m.position
),
whole AS MATERIALIZED (
  SELECT * FROM fence
  WHERE CASE
    WHEN EXISTS (SELECT FROM batch WHERE content IS NULL)
    THEN insika_undo('IN002', (
      SELECT format('call %%s of step %%s is open and no result was given for it', call_id, %(step)s)
      FROM batch WHERE content IS NULL ORDER BY idx LIMIT 1))
    WHEN (SELECT count(*) FROM batch) = %(results)s
     AND (SELECT count(*) FROM recorded) = (SELECT count(*) FROM batch WHERE open)
     AND (SELECT count(*) FROM ended)
         = cardinality(%(absorbed)s::bigint[]) + cardinality(%(refused)s::bigint[])
    THEN true ELSE insika_undo('IN001', 'a message or a call was not there to be ended') END
),
asked AS (
  INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, tenant, agent, model, state, started_at)
  SELECT %(turn_id)s, %(call_step)s, %(call_attempt)s, %(call_purpose)s, whole.id, whole.tenant, turns.agent,
         %(call_model)s, 'open', insika_now()
  FROM whole
  JOIN turns ON turns.id = %(turn_id)s
),
said AS (
  INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_call_id, is_error, batch_open,
                        position, at)
  SELECT whole.id, whole.log_seq - %(results)s - %(added)s + line.place, %(turn_id)s, whole.epoch, %(step)s,
         line.role, line.content, line.call_id, line.is_error, line.batch_open, line.position, insika_now()
  FROM whole
  CROSS JOIN (
    SELECT idx + 1, 'tool', content, call_id, is_error, %(results)s - idx - 1, NULL::bigint FROM batch
    UNION ALL
    SELECT %(results)s + place, 'user', content, NULL, false, 0, position
    FROM ROWS FROM (
      json_to_recordset(%(lines)s::json) AS (content text, position bigint)
    ) WITH ORDINALITY AS added (content, position, place)
  ) AS line (place, role, content, call_id, is_error, batch_open, position)
  ORDER BY line.place
)
SELECT log_seq FROM whole
