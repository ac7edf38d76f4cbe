INSERT INTO mailbox (session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, withdraws, debounce_ms,
                     debounce_max_ms, agent, channel, recipient, origin, customer, sent_at)
VALUES (?, ?, ?, ?, ?, ?, insika_now(), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
