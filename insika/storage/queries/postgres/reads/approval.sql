SELECT a.id, a.turn_id, a.session_id, a.call_id, a.tool, a.arguments_hash, a.asked_at, a.expires_at, a.decision,
       a.decided_by, a.reason, a.decided_at, s.tenant, s.name, t.agent, c.arguments,
       a.decision IS NULL AND a.expires_at > insika_now() AND s.turn_id IS NOT DISTINCT FROM a.turn_id
FROM approvals AS a
JOIN sessions AS s ON s.id = a.session_id
JOIN turns AS t ON t.id = a.turn_id
JOIN tool_calls AS c ON c.turn_id = a.turn_id AND c.call_id = a.call_id
WHERE a.id = %(approval_id)s
