-- The oldest open ones first, then the others, newest first. Each half goes by an index of its own and ends at the limit.
WITH found AS (
  SELECT * FROM (
    SELECT a.id, 1 AS open FROM approvals AS a
    JOIN sessions AS s ON s.id = a.session_id AND s.turn_id = a.turn_id
    WHERE a.decision IS NULL AND a.expires_at > insika_now()
    ORDER BY a.asked_at, a.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (
    SELECT a.id, 0 AS open FROM approvals AS a
    JOIN sessions AS s ON s.id = a.session_id
    WHERE NOT :open_only
      AND (a.decision IS NULL AND a.expires_at > insika_now() AND s.turn_id IS a.turn_id) IS NOT TRUE
    ORDER BY a.asked_at DESC, a.id DESC LIMIT :limit)
)
SELECT a.id, a.turn_id, a.session_id, a.call_id, a.tool, a.arguments_hash, a.asked_at, a.expires_at, a.decision,
       a.decided_by, a.reason, a.decided_at, s.tenant, s.name, t.agent, c.arguments, f.open
FROM found AS f
JOIN approvals AS a ON a.id = f.id
JOIN sessions AS s ON s.id = a.session_id
JOIN turns AS t ON t.id = a.turn_id
JOIN tool_calls AS c ON c.turn_id = a.turn_id AND c.call_id = a.call_id
ORDER BY NOT f.open, CASE WHEN f.open THEN a.asked_at END, CASE WHEN f.open THEN a.id END, a.asked_at DESC, a.id DESC
LIMIT :limit
