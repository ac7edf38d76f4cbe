-- Due and unowned, and not nudged in the last 5 s, then 10, 20, 40, 60. A nudge from the future is one from before a
-- clock was set back.
SELECT id FROM sessions
WHERE due_at <= insika_now() AND due_at < 4611686018427387904 AND (NOT paused OR controls > 0)
  AND (lease_id IS NULL OR lease_until < insika_now())
  AND (nudged_at IS NULL OR nudged_at > insika_now()
       OR nudged_at <= insika_now() - min(5000000 << min(nudges - 1, 4), 60000000))
ORDER BY due_at, id LIMIT :limit
