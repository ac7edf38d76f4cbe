WITH fence AS (
  UPDATE sessions SET
    waiting    = waiting - cardinality(%(positions)s::bigint[]),
    controls   = controls - cardinality(%(control)s::bigint[]),
    turn_key   = CASE WHEN turn_id IS NOT NULL AND %(steerable_key)s::text IS NOT NULL AND urgent_seq <= %(urgent)s
                      THEN %(steerable_key)s ELSE turn_key END,
    merge_key  = CASE WHEN merge_turn = %(turn_id)s THEN NULL ELSE merge_key END,
    merge_turn = nullif(merge_turn, %(turn_id)s)
  WHERE id = %(session_id)s AND lease_id = %(lease_id)s AND (NOT %(merging)s OR mail_seq = %(mail)s)
    AND waiting >= cardinality(%(positions)s::bigint[]) AND controls >= cardinality(%(control)s::bigint[])
  RETURNING id
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
    state = %(state)s, outcome = CASE WHEN %(state)s = 'cancelled' THEN 'cancelled' END, ended_at = insika_now()
  FROM fence
  WHERE turns.id = %(turn_id)s AND turns.session_id = fence.id AND turns.state = 'queued'
  RETURNING turns.id
),
estimated AS (
  UPDATE model_calls AS m SET
    state = 'estimated', input = %(input)s, output = %(output)s, cache_read = %(cache_read)s,
    cache_write = %(cache_write)s, settled_at = insika_now()
  FROM turn WHERE m.turn_id = turn.id AND m.state = 'open'
)
SELECT true FROM fence
WHERE CASE
  WHEN (SELECT count(*) FROM ended) = cardinality(%(positions)s::bigint[]) + cardinality(%(control)s::bigint[])
   AND (%(turn_id)s IS NULL OR EXISTS (SELECT FROM turn))
  THEN true ELSE insika_undo('IN001', 'a message or the turn was not there to be ended') END
