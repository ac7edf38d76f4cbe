-- What is in the sums of days, and what is not yet.
SELECT coalesce(sum(tokens) FILTER (WHERE day >= %(day)s), 0)::bigint,
       coalesce(sum(tokens) FILTER (WHERE day >= %(month)s), 0)::bigint
FROM (
  SELECT day, tokens FROM spend_days
  WHERE tenant = %(tenant)s AND agent = %(agent)s AND day >= least(%(day)s, %(month)s)
  UNION ALL
  SELECT (started_at AT TIME ZONE 'UTC')::date, input + output + cache_read + cache_write FROM model_calls
  WHERE NOT rolled_up AND tenant = %(tenant)s AND agent = %(agent)s
    AND started_at >= (least(%(day)s, %(month)s)::timestamp AT TIME ZONE 'UTC') AND state <> 'open'
) AS spent (day, tokens)
