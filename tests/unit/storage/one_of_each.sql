-- A row in each state from which something must be refused.
INSERT INTO sessions (id, name) VALUES (1, 's');
INSERT INTO turns (id, session_id, position, state, agent, origin, created_at, started_at) VALUES
  ('running', 1, 1, 'running', 'a', 'customer', 0, 0), ('queued', 1, 2, 'queued', 'a', 'customer', 0, NULL);
INSERT INTO turns (id, session_id, position, state, agent, origin, created_at, started_at, ended_at) VALUES
  ('ended', 1, 0, 'completed', 'a', 'customer', 0, 0, 0);
INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, agent, origin) VALUES
  (1, 1, 'j', 'followup', 'hello', 0, 'accepted', 'queued', 'a', 'customer'),
  (1, 2, 'k', 'followup', 'hello', 0, 'accepted', 'queued', 'a', 'customer');
UPDATE mailbox SET ended = 'withdrawn' WHERE position = 2;
INSERT INTO tool_calls (turn_id, step, idx, session_id, call_id, name, arguments, side_effect, state, result,
  announced_at) VALUES ('running', 1, 0, 1, 'a', 't', '{}', 1, 'started', NULL, 0),
  ('running', 1, 1, 1, 'b', 't', '{}', 1, 'done', 'ok', 0);
INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_calls, batch_open, at) VALUES
  (1, 1, 'running', 1, 0, 'user', 'hello', NULL, 0, 0), (1, 2, 'running', 1, 1, 'assistant', '', '[]', 2, 0);
INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, agent, model, state, started_at,
  settled_at) VALUES ('running', 1, 1, 'answer', 1, 'a', 'm', 'measured', 0, 0);
INSERT INTO profiles VALUES ('r', 'shop', '{}');
INSERT INTO outbox (id, session_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
  max_attempts, timeout_s, order_wait_s, due_at, created_at, state, claim, claimed_at, claim_until, attempts)
VALUES
  ('delivered', 1, 'answer', 'c', 'l', 1, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, 0, 0, 'delivered', 'x', 0, 0, 1),
  ('uncertain', 1, 'answer', 'c', 'l', 2, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, 0, 0, 'uncertain', 'x', 0, 0, 1),
  ('pending', 1, 'answer', 'c', 'l', 3, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, 0, 0, 'pending',
   NULL, NULL, NULL, 0);
