-- A lease that is still there belonged to an owner that died. The due time stays in the past: should this owner die
-- too, its session is due by itself. A lease that is this one is a claim whose answer was lost.
UPDATE sessions SET
  epoch       = epoch + (lease_id IS NOT :lease_id),
  lease_id    = :lease_id,
  lease_until = insika_now() + :lease_us,
  nudged_at   = NULL,
  nudges      = 0,
  deaths      = deaths + coalesce(lease_id <> :lease_id, 0),
  parked_ms   = parked_ms + max(0, coalesce(insika_now() - parked_at, 0)) / 1000,
  parked_at   = NULL
WHERE id = :session_id AND (NOT paused OR controls > 0 OR lease_id = :lease_id) AND due_at <= insika_now()
  AND (lease_id IS NULL OR lease_id = :lease_id OR (:take_expired AND lease_until < insika_now()))
  AND (:take_suspects OR lease_id = :lease_id OR deaths + (lease_id IS NOT NULL) < 2)
RETURNING epoch, deaths, turn_id
