-- What is in the sums of days, and what is not yet.
SELECT coalesce(sum(CASE WHEN day >= :day THEN tokens END), 0), coalesce(sum(CASE WHEN day >= :month THEN tokens END), 0)
FROM (
  SELECT day, tokens FROM spend_days
  WHERE tenant = :tenant AND agent = :agent AND day >= min(:day, :month)
  UNION ALL
  SELECT started_at / 86400000000, input + output + cache_read + cache_write FROM model_calls
  WHERE rolled_up = 0 AND tenant = :tenant AND agent = :agent AND started_at >= min(:day, :month) * 86400000000
    AND state <> 'open')
