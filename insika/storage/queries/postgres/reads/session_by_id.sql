SELECT id, tenant, name, epoch, lease_id, lease_until, due_at, paused, mail_seq, urgent_seq, log_seq, waiting, open_calls,
       turn_id, turn_key, merge_turn, merge_key, deaths, load_from, vars, parked_ms
FROM sessions WHERE id = %(session_id)s
