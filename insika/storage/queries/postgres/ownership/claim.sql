-- A lease that is still there belonged to an owner that died. The due time stays in the past: should this owner die
-- too, its session is due by itself. A lease that is this one is a claim whose answer was lost. The attempt is counted
-- on what was there before the lock was waited for: the turn may not have begun yet. That of a turn which waits for a
-- person begins when it is resumed.
WITH taken AS (
  UPDATE sessions SET
    epoch       = epoch + (lease_id IS DISTINCT FROM %(lease_id)s)::int,
    lease_id    = %(lease_id)s,
    lease_until = insika_now() + %(lease_ms)s * interval '1 ms',
    nudged_at   = NULL,
    nudges      = 0,
    deaths      = deaths + coalesce(lease_id <> %(lease_id)s, false)::int,
    parked_ms   = parked_ms + greatest(0, floor(extract(epoch FROM insika_now() - parked_at) * 1000))::bigint,
    parked_at   = NULL
  WHERE id = %(session_id)s AND (NOT paused OR controls > 0 OR lease_id = %(lease_id)s) AND due_at <= insika_now()
    AND (lease_id IS NULL OR lease_id = %(lease_id)s OR (%(take_expired)s AND lease_until < insika_now()))
    AND (%(take_suspects)s OR lease_id = %(lease_id)s OR deaths + (lease_id IS NOT NULL)::int < 2)
  RETURNING epoch, deaths, turn_id
), again AS (
  UPDATE turns SET attempt = attempt + (turns.state <> 'waiting')::int FROM taken
  WHERE turns.id = taken.turn_id AND turns.state IN ('queued', 'running', 'waiting')
    AND NOT EXISTS (SELECT FROM sessions WHERE id = %(session_id)s AND lease_id = %(lease_id)s)
)
SELECT epoch, deaths FROM taken
