-- Due, unowned (or its lease over), and not held back by its last nudge: when the first session will be all three.
SELECT min(max(due_at, coalesce(lease_until + 1, 0),
               CASE WHEN nudged_at IS NULL OR nudged_at > insika_now() THEN 0
                    ELSE nudged_at + min(5000000 << min(nudges - 1, 4), 60000000) END))
FROM sessions WHERE due_at < 4611686018427387904 AND (NOT paused OR controls > 0)
