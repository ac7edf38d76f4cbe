-- The newest first.
SELECT s.tenant, s.name, s.waiting, s.turn_id, t.state, s.paused, s.due_at,
       s.lease_id IS NOT NULL AND s.lease_until >= insika_now(), s.log_seq
FROM sessions AS s
LEFT JOIN turns AS t ON t.id = s.turn_id
WHERE %(tenant)s::text IS NULL OR s.tenant = %(tenant)s
ORDER BY s.id DESC LIMIT %(limit)s
