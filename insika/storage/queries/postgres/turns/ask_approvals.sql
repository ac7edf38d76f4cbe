-- Each call is marked in its own row: whoever starts one sees that there, whatever he has waited for.
WITH fence AS (
  UPDATE sessions SET log_seq = log_seq
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND turn_id = %(turn_id)s AND open_calls > 0
    AND urgent_seq <= %(urgent)s
  RETURNING id, insika_now() AS now
),
marked AS (
  UPDATE tool_calls AS c SET asked = true
  FROM fence
  WHERE c.turn_id = %(turn_id)s AND c.call_id = ANY(%(call_ids)s::text[]) AND c.state = 'announced'
  RETURNING c.call_id
),
whole AS MATERIALIZED (
  SELECT id, now FROM fence
  WHERE CASE WHEN (SELECT count(*) FROM marked) = cardinality(%(call_ids)s::text[]) THEN true
             ELSE insika_undo('IN001', 'a call to be asked about is not an announced one') END
),
asked AS (
  INSERT INTO approvals (id, turn_id, call_id, session_id, tool, arguments_hash, asked_at, expires_at)
  SELECT ask.id, %(turn_id)s, ask.call_id, whole.id, ask.tool, ask.arguments_hash, whole.now,
         whole.now + ask.valid_s * interval '1 s'
  FROM whole
  CROSS JOIN json_to_recordset(%(asks)s::json)
    AS ask (id text, call_id text, tool text, arguments_hash text, valid_s double precision)
  ON CONFLICT (turn_id, call_id) DO NOTHING
)
SELECT true FROM whole
