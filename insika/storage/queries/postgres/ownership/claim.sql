-- A lease that is still there belonged to an owner that died. The due time stays in the past: should this owner die
-- too, its session is due by itself. A lease that is this one is a claim whose answer was lost. The attempt is counted
-- on what was there before the lock was waited for: the turn may not have begun yet.
WITH taken AS (
  UPDATE sessions SET
    epoch       = epoch + (lease_id IS DISTINCT FROM %(lease_id)s)::int,
    lease_id    = %(lease_id)s,
    lease_until = insika_now() + %(lease_ms)s * interval '1 ms',
    nudged_at   = NULL,
    nudges      = 0,
    deaths      = deaths + coalesce(lease_id <> %(lease_id)s, false)::int
  WHERE id = %(session_id)s AND NOT paused AND due_at <= insika_now()
    AND (lease_id IS NULL OR lease_id = %(lease_id)s OR (%(take_expired)s AND lease_until < insika_now()))
    AND (%(take_suspects)s OR lease_id = %(lease_id)s OR deaths + (lease_id IS NOT NULL)::int < 2)
  RETURNING epoch, deaths, turn_id
), again AS (
  UPDATE turns SET attempt = attempt + 1 FROM taken
  WHERE turns.id = taken.turn_id AND turns.state IN ('queued', 'running')
    AND NOT EXISTS (SELECT FROM sessions WHERE id = %(session_id)s AND lease_id = %(lease_id)s)
)
SELECT epoch, deaths FROM taken
