-- The end of an attempt. Only the holder of the current claim may write it; when the claim has run out meanwhile, it
-- may still tell that the delivery arrived. What an answer's bad end is told by is raised with it.
WITH settled AS (
  UPDATE outbox SET state = %(state)s, last_error = %(reason)s, settled_at = insika_now()
  WHERE id = %(id)s AND claim = %(claim)s
    AND (state = 'delivering' OR (state = 'uncertain' AND %(state)s = 'delivered'))
  RETURNING kind, state, turn_id
),
raised AS MATERIALIZED (
  SELECT key FROM settled CROSS JOIN LATERAL insika_raise(%(alerts)s::json, settled.turn_id) AS key
  WHERE %(alerts)s::text <> '[]' AND settled.kind = 'answer' AND settled.state IN ('failed', 'uncertain')
)
SELECT true, (SELECT count(*) FROM raised) FROM settled
