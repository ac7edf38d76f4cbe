INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_calls, tool_call_id, is_error, batch_open,
                      verbatim, position, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, insika_now())
