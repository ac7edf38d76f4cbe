-- A session that is locked is passed over: whoever holds it is about to change what makes it due.
WITH due AS MATERIALIZED (
  SELECT id FROM sessions
  WHERE due_at <= (SELECT insika_now()) AND due_at < 'infinity' AND (NOT paused OR controls > 0)
    AND (lease_id IS NULL OR lease_until < (SELECT insika_now()))
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), woken AS (
  UPDATE sessions AS s SET nudged_at = NULL, nudges = 0 FROM due WHERE s.id = due.id RETURNING s.id
)
SELECT count(*) FROM woken
