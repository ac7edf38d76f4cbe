"""What the tables of every dialect must refuse, whoever asks; and what stands beside it and must be allowed.

The statements are the same for all but for how a time and a truth are written: `$now` and `$yes`.
"""

from __future__ import annotations

from string import Template

ONE_OF_EACH = """
INSERT INTO sessions (name) VALUES ('s');
INSERT INTO turns (id, session_id, position, state, agent, origin, created_at, started_at) VALUES
  ('running', 1, 1, 'running', 'a', 'customer', $now, $now), ('queued', 1, 2, 'queued', 'a', 'customer', $now, NULL);
INSERT INTO turns (id, session_id, position, state, agent, origin, created_at, started_at, ended_at) VALUES
  ('ended', 1, 0, 'completed', 'a', 'customer', $now, $now, $now);
INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, agent, origin) VALUES
  (1, 1, 'j', 'followup', 'hello', $now, 'accepted', 'queued', 'a', 'customer'),
  (1, 2, 'k', 'followup', 'hello', $now, 'accepted', 'queued', 'a', 'customer');
UPDATE mailbox SET ended = 'withdrawn' WHERE position = 2;
INSERT INTO tool_calls (turn_id, step, idx, session_id, call_id, name, arguments, side_effect, state, result,
  announced_at) VALUES ('running', 1, 0, 1, 'a', 't', '{}', $yes, 'started', NULL, $now),
  ('running', 1, 1, 1, 'b', 't', '{}', $yes, 'done', 'ok', $now);
INSERT INTO approvals (id, turn_id, call_id, session_id, tool, arguments_hash, asked_at, expires_at, decision,
  decided_at) VALUES ('rejected', 'running', 'a', 1, 't', 'h', $now, $now, 'rejected', $now),
  ('approved', 'running', 'b', 1, 't', 'h', $now, $now, 'approved', $now);
INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_calls, batch_open, at) VALUES
  (1, 1, 'running', 1, 0, 'user', 'hello', NULL, 0, $now), (1, 2, 'running', 1, 1, 'assistant', '', '[]', 2, $now);
INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, agent, model, state, started_at,
  settled_at) VALUES ('running', 1, 1, 'answer', 1, 'a', 'm', 'measured', $now, $now),
  ('running', 1, 2, 'answer', 1, 'a', 'm', 'open', $now, NULL),
  ('running', 1, 3, 'answer', 1, 'a', 'm', 'estimated', $now, $now);
UPDATE model_calls SET rolled_up = $yes WHERE attempt = 3;
INSERT INTO alerts VALUES ('raised', $now);
INSERT INTO profiles VALUES ('r', 'shop', '{}');
INSERT INTO outbox (id, session_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee,
  max_attempts, timeout_s, order_wait_s, due_at, created_at, state, claim, claimed_at, claim_until, attempts)
VALUES
  ('delivered', 1, 'answer', 'c', 'l', 1, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, $now, $now, 'delivered',
   'x', $now, $now, 1),
  ('uncertain', 1, 'answer', 'c', 'l', 2, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, $now, $now, 'uncertain',
   'x', $now, $now, 1),
  ('pending', 1, 'answer', 'c', 'l', 3, 'r', '{}', 'u', 'at_most_once', 3, 1, 1, $now, $now, 'pending',
   NULL, NULL, NULL, 0);
"""
"""A row in each state from which something must be refused."""

MESSAGE = "INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_call_id, batch_open, at)"
MAIL = "INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, withdraws, agent, origin)"
ASKED = "INSERT INTO approvals (id, turn_id, call_id, session_id, tool, arguments_hash, asked_at, expires_at, decision)"
REFUSED = {
    "a lease without an end": "UPDATE sessions SET lease_id = 'x'",
    "fewer than none waiting": "UPDATE sessions SET waiting = -1",
    "open calls without a turn": "UPDATE sessions SET open_calls = 1",
    "steers without a turn": "UPDATE sessions SET turn_key = 'k'",
    "a merging turn without its key": "UPDATE sessions SET merge_turn = 'x'",
    "fewer than no open requests": "UPDATE sessions SET controls = -1",
    "parked without a turn": "UPDATE sessions SET parked_at = $now",
    "parked with an owner": "UPDATE sessions SET turn_id = 'x', lease_id = 'x', lease_until = $now, parked_at = $now",
    "parked for less than no time": "UPDATE sessions SET parked_ms = -1",
    "an unknown turn state": "UPDATE turns SET state = 'lost' WHERE id = 'queued'",
    "a turn that leaves its end": "UPDATE turns SET state = 'running', ended_at = NULL WHERE id = 'ended'",
    "a turn that ends twice": "UPDATE turns SET state = 'failed' WHERE id = 'ended'",
    "a turn that returns to the queue": "UPDATE turns SET state = 'queued' WHERE id = 'running'",
    "two turns at a time": "UPDATE turns SET state = 'running', started_at = $now WHERE id = 'queued'",
    "an end without its time": "UPDATE turns SET state = 'failed' WHERE id = 'running'",
    "consumed by nobody": "UPDATE mailbox SET ended = 'turn' WHERE position = 1",
    "consumed twice": "UPDATE mailbox SET ended = 'turn', consumed_by = 'queued' WHERE position = 2",
    "a person's message as control": "UPDATE mailbox SET ended = 'control' WHERE position = 1",
    "a withdrawal of nothing": f"{MAIL} VALUES (1, 3, 'r', 'withdraw', '', $now, 'control', 'queued', NULL, 'a', 'o')",
    "a withdrawal as a message": f"{MAIL} VALUES (1, 3, 'r', 'withdraw', '', $now, 'accepted', 'queued', 1, 'a', 'o')",
    "a message that withdraws": f"{MAIL} VALUES (1, 3, 'r', 'followup', 'x', $now, 'accepted', 'queued', 1, 'a', 'o')",
    "a message as a request": f"{MAIL} VALUES (1, 3, 'r', 'followup', 'x', $now, 'control', 'queued', NULL, 'a', 'o')",
    "a waiting message deleted": "DELETE FROM mailbox WHERE position = 1",
    "a call started twice": "UPDATE tool_calls SET state = 'started' WHERE call_id = 'a'",
    "a call that goes back": "UPDATE tool_calls SET state = 'announced' WHERE call_id = 'a'",
    "a call that ends twice": "UPDATE tool_calls SET state = 'unknown' WHERE call_id = 'b'",
    "done without a result": "UPDATE tool_calls SET state = 'done' WHERE call_id = 'a'",
    "approved after it was rejected": "UPDATE approvals SET decision = 'approved' WHERE id = 'rejected'",
    "undecided again": "UPDATE approvals SET decision = NULL, decided_at = NULL WHERE id = 'approved'",
    "rejected after it was approved": "UPDATE approvals SET decision = 'rejected' WHERE id = 'approved'",
    "decided at no time": "UPDATE approvals SET decided_at = NULL WHERE id = 'approved'",
    "an unknown decision": "UPDATE approvals SET decision = 'perhaps' WHERE id = 'approved'",
    "asked twice about one call": f"{ASKED} VALUES ('again', 'running', 'b', 1, 't', 'h', $now, $now, NULL)",
    "asked about no call": f"{ASKED} VALUES ('other', 'running', 'c', 1, 't', 'h', $now, $now, NULL)",
    "a message changed": "UPDATE messages SET content = 'x' WHERE seq = 1",
    "a message deleted": "DELETE FROM messages WHERE seq = 2",
    "a gap in the log": f"{MESSAGE} VALUES (1, 4, 'running', 1, 1, 'tool', 'x', 'a', 1, $now)",
    "a user message in a batch": f"{MESSAGE} VALUES (1, 3, 'running', 1, 1, 'user', 'x', NULL, 0, $now)",
    "a result too few": f"{MESSAGE} VALUES (1, 3, 'running', 1, 1, 'tool', 'x', 'a', 0, $now)",
    "a result without its call": f"{MESSAGE} VALUES (1, 3, 'running', 1, 1, 'tool', 'x', 'unknown', 1, $now)",
    "a result first of all": f"{MESSAGE} VALUES (1, 1, 'running', 1, 1, 'tool', 'x', 'a', 1, $now)",
    "verbatim of no call": MESSAGE.replace("content", "verbatim, content")
    + " VALUES (1, 3, 'running', 1, 1, 'tool', '[]', 'x', 'a', 1, $now)",
    "handed on less than never": "UPDATE turns SET depth = -1 WHERE id = 'running'",
    "routed by more agents than it had": """UPDATE turns SET routes = '["a", null]' WHERE id = 'running'""",
    "measured twice": "UPDATE model_calls SET state = 'measured', input = 9",
    "added up before it is settled": "UPDATE model_calls SET rolled_up = $yes WHERE attempt = 2",
    "added up twice": "UPDATE model_calls SET rolled_up = $yes WHERE attempt = 3",
    "counted elsewhere": "UPDATE model_calls SET agent = 'b' WHERE attempt = 2",
    "counted for another tenant": "UPDATE model_calls SET tenant = 'b' WHERE attempt = 2",
    "counted on another day": "UPDATE model_calls SET started_at = $now WHERE attempt = 2",
    "raised twice": "INSERT INTO alerts VALUES ('raised', $now)",
    "a revision changed": "UPDATE profiles SET data = '[]'",
    "delivered, and then not": "UPDATE outbox SET state = 'uncertain' WHERE id = 'delivered'",
    "uncertain, and sent by itself": "UPDATE outbox SET state = 'pending' WHERE id = 'uncertain'",
    "delivered without a claim": "UPDATE outbox SET state = 'delivered' WHERE id = 'pending'",
    "delivering without a claim": "UPDATE outbox SET state = 'delivering' WHERE id = 'pending'",
    "attempts forgotten": "UPDATE outbox SET attempts = 0 WHERE id = 'uncertain'",
    "sent to somebody else": "UPDATE outbox SET url = 'v' WHERE id = 'pending'",
    "two at one place of a lane": "UPDATE outbox SET lane_pos = 1 WHERE id = 'pending'",
}

ALLOWED = {
    "the next result": f"{MESSAGE} VALUES (1, 3, 'running', 1, 1, 'tool', 'x', 'a', 1, $now)",
    "a route for each agent": """UPDATE turns SET depth = 1, routes = '["a", null]' WHERE id = 'running'""",
    "what is settled added up": "UPDATE model_calls SET rolled_up = $yes WHERE attempt = 1",
    "an estimate measured late": "UPDATE model_calls SET state = 'measured', input = 9 WHERE attempt = 3",
    "another alert": "INSERT INTO alerts VALUES ('other', $now)",
    "an end with its time": "UPDATE turns SET state = 'failed', ended_at = $now WHERE id = 'running'",
    "a withdrawal": f"{MAIL} VALUES (1, 3, 'r', 'withdraw', '', $now, 'control', 'queued', 1, 'a', 'o')",
    "a parked turn": "UPDATE sessions SET turn_id = 'x', parked_at = $now",
    "an approval that was not used": "UPDATE approvals SET decision = 'expired' WHERE id = 'approved'",
    "a message withdrawn": "UPDATE mailbox SET ended = 'withdrawn' WHERE position = 1",
    "a resend": "UPDATE outbox SET state = 'pending', resends = resends + 1 WHERE id = 'uncertain'",
    "a late yes": "UPDATE outbox SET state = 'delivered' WHERE id = 'uncertain'",
}


def in_dialect(statement: str, *, now: str, yes: str) -> str:
    return Template(statement).substitute(now=now, yes=yes)
