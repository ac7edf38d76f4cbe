-- A lease that is still there belonged to an owner that died. The due time stays in the past: should this owner die
-- too, its session is due by itself.
UPDATE sessions SET
  epoch       = epoch + 1,
  lease_id    = :lease_id,
  lease_until = insika_now() + :lease_us,
  nudged_at   = NULL,
  nudges      = 0,
  deaths      = deaths + (lease_id IS NOT NULL)
WHERE id = :session_id AND NOT paused AND due_at <= insika_now()
  AND (lease_id IS NULL OR (:take_expired AND lease_until < insika_now()))
  AND (:take_suspects OR deaths + (lease_id IS NOT NULL) < 2)
RETURNING epoch, deaths, turn_id
