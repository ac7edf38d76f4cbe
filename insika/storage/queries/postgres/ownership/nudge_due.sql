-- Due and unowned, and not nudged in the last 5 s, then 10, 20, 40, 60; counted as nudged, and passed over by whoever
-- asks at the same time. A nudge from the future is one from before a clock was set back.
WITH due AS MATERIALIZED (
  SELECT id, due_at FROM sessions
  WHERE due_at <= (SELECT insika_now()) AND due_at < 'infinity' AND (NOT paused OR controls > 0)
    AND (lease_id IS NULL OR lease_until < (SELECT insika_now()))
    AND (nudged_at IS NULL OR nudged_at > (SELECT insika_now())
         OR nudged_at <= (SELECT insika_now()) - least(interval '5 s' * 2 ^ least(nudges - 1, 4), interval '60 s'))
  ORDER BY due_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
), nudged AS (
  UPDATE sessions AS s SET nudged_at = insika_now(), nudges = s.nudges + 1 FROM due WHERE s.id = due.id
  RETURNING s.id, due.due_at
)
SELECT id FROM nudged ORDER BY due_at, id
