UPDATE sessions SET nudged_at = NULL, nudges = 0
WHERE due_at <= insika_now() AND due_at < 4611686018427387904 AND NOT paused
  AND (lease_id IS NULL OR lease_until < insika_now())
