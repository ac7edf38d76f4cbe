UPDATE sessions SET nudged_at = NULL, nudges = 0
WHERE due_at <= insika_now() AND due_at < 4611686018427387904 AND (NOT paused OR controls > 0)
  AND (lease_id IS NULL OR lease_until < insika_now())
