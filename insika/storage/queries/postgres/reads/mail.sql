SELECT position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms, debounce_max_ms, agent, channel,
       recipient, origin, ended, consumed_by, customer, withdraws
FROM mailbox WHERE session_id = %(session_id)s ORDER BY position
