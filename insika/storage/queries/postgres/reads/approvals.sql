-- The oldest open ones first, then the others, newest first. Each half goes by an index of its own and ends at the limit.
WITH clock AS MATERIALIZED (
  SELECT insika_now() AS now
), found AS MATERIALIZED (
  (SELECT a.*, true AS open FROM clock
   CROSS JOIN approvals AS a
   JOIN sessions AS s ON s.id = a.session_id AND s.turn_id = a.turn_id
   WHERE a.decision IS NULL AND a.expires_at > clock.now
   ORDER BY a.asked_at, a.id LIMIT %(limit)s)
  UNION ALL
  (SELECT a.*, false FROM clock
   CROSS JOIN approvals AS a
   JOIN sessions AS s ON s.id = a.session_id
   WHERE NOT %(open_only)s
     AND (a.decision IS NULL AND a.expires_at > clock.now AND s.turn_id IS NOT DISTINCT FROM a.turn_id) IS NOT TRUE
   ORDER BY a.asked_at DESC, a.id DESC LIMIT %(limit)s)
)
SELECT f.id, f.turn_id, f.session_id, f.call_id, f.tool, f.arguments_hash, f.asked_at, f.expires_at, f.decision,
       f.decided_by, f.reason, f.decided_at, s.tenant, s.name, t.agent, c.arguments, f.open
FROM found AS f
JOIN sessions AS s ON s.id = f.session_id
JOIN turns AS t ON t.id = f.turn_id
JOIN tool_calls AS c ON c.turn_id = f.turn_id AND c.call_id = f.call_id
ORDER BY NOT f.open, CASE WHEN f.open THEN f.asked_at END, CASE WHEN f.open THEN f.id END, f.asked_at DESC, f.id DESC
LIMIT %(limit)s
