-- What is known of a job's id now, for one that got no place: a repetition, or another text under the same id. Where it
-- is neither and the mailbox is `full`, or the text is another, the job is kept as rejected. All NULL: neither, and now
-- there is room.
WITH known AS MATERIALIZED (
  SELECT k.digest = %(digest)s AS same, k.position, coalesce(t.id, k.turn_id) AS turn_id, t.state
  FROM job_ids AS k
  LEFT JOIN mailbox AS m ON m.session_id = k.session_id AND m.position = k.position
  LEFT JOIN turns AS t ON t.id = coalesce(m.consumed_by, m.turn_id)
  WHERE k.session_id = %(session_id)s AND k.job_id = %(job_id)s AND NOT k.control
    AND k.seen_at > insika_now() - interval '24 hours'
), kept AS (
  INSERT INTO rejected_jobs (at, source, raw, error)
  SELECT insika_now(), 'accept', %(raw)s, CASE WHEN known.same IS NULL THEN %(error_full)s ELSE %(error_other)s END::json
  FROM (SELECT) AS always LEFT JOIN known ON true
  WHERE CASE WHEN known.same IS NULL THEN %(full)s ELSE NOT known.same END
  RETURNING id
)
SELECT known.same, known.position, known.turn_id, known.state, kept.id
FROM (SELECT) AS always LEFT JOIN known ON true LEFT JOIN kept ON true
