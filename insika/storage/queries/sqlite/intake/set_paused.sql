-- Counted as mail, so that whoever lets go or crosses a boundary has seen it; saying it again changes nothing.
UPDATE sessions SET
  paused   = :paused,
  mail_seq = mail_seq + (paused <> :paused),
  due_at   = CASE WHEN paused AND NOT :paused AND (waiting > 0 OR turn_id IS NOT NULL OR controls > 0)
                  THEN 0 ELSE due_at END
WHERE tenant = :tenant AND name = :name
