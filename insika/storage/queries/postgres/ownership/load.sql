-- All that an owner goes on from, in one snapshot, as one JSON text. Each list holds a table's columns in the order in
-- which the readers of `reads` select them. What a provider wants back verbatim is sent again only while its turn runs.
SELECT json_build_array(
  insika_now(),
  json_build_array(
    s.id, s.tenant, s.name, s.epoch, s.lease_id, s.lease_until, s.due_at, s.paused, s.mail_seq, s.urgent_seq, s.log_seq,
    s.waiting, s.open_calls, s.turn_id, s.turn_key, s.merge_turn, s.merge_key, s.deaths, s.load_from, s.vars,
    s.parked_ms),
  (SELECT json_agg(json_build_array(
     m.position, m.job_id, m.mode, m.key, m.text, m.at, m.verdict, m.turn_id, m.cuts, m.debounce_ms, m.debounce_max_ms,
     m.agent, m.channel, m.recipient, m.origin, m.ended, m.consumed_by, m.customer, m.withdraws)
     ORDER BY m.position)
   FROM mailbox AS m WHERE m.session_id = s.id AND m.ended IS NULL),
  (SELECT json_build_array(
     t.id, t.session_id, t.position, t.state, t.outcome, t.attempt, t.agent, t.channel, t.recipient, t.origin,
     t.profile_revision, t.limits, t.synthesized, t.route, t.timing, t.error, t.started_seq, t.created_at, t.started_at,
     t.ended_at, t.model, t.depth, t.routes)
   FROM turns AS t WHERE t.id = s.turn_id),
  (SELECT json_agg(json_build_array(
     c.step, c.idx, c.call_id, c.name, c.arguments, c.side_effect, c.state, c.result, c.is_error, c.halts)
     ORDER BY c.step, c.idx)
   FROM tool_calls AS c WHERE c.turn_id = s.turn_id),
  (SELECT json_agg(json_build_array(
     c.turn_id, c.step, c.attempt, c.purpose, c.model, c.state, c.input, c.output, c.cache_read, c.cache_write, c.agent)
     ORDER BY c.step, c.attempt, c.purpose)
   FROM model_calls AS c WHERE c.turn_id = s.turn_id),
  (SELECT json_agg(json_build_array(
     l.seq, l.turn_id, l.epoch, l.step, l.role, l.content, l.tool_calls, l.tool_call_id, l.is_error, l.position,
     CASE WHEN l.turn_id = s.turn_id THEN l.verbatim END)
     ORDER BY l.seq)
   FROM messages AS l WHERE l.session_id = s.id AND l.seq > greatest(%(log_after)s, s.load_from - 1)),
  (SELECT json_agg(json_build_array(
     a.id, a.turn_id, a.session_id, a.call_id, a.tool, a.arguments_hash, a.asked_at, a.expires_at, a.decision,
     a.decided_by, a.reason, a.decided_at) ORDER BY a.asked_at, a.id)
   FROM approvals AS a WHERE a.turn_id = s.turn_id))
FROM sessions AS s WHERE s.id = %(session_id)s AND s.lease_id = %(lease_id)s
