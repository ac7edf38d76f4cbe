-- Counted as mail, so that whoever lets go or crosses a boundary has seen it; saying it again changes nothing.
UPDATE sessions SET
  paused   = %(paused)s,
  mail_seq = mail_seq + (paused <> %(paused)s)::int,
  due_at   = CASE WHEN paused AND NOT %(paused)s AND (waiting > 0 OR turn_id IS NOT NULL OR controls > 0)
                  THEN '-infinity' ELSE due_at END
WHERE tenant = %(tenant)s AND name = %(name)s
RETURNING id
