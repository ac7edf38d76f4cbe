-- What people ask of a session beside talking to it: taking a message back, deciding about a call, holding it.

-- `parked_at`: since when a turn has had no owner because it was let go on purpose; `parked_ms`: for how long that was
-- so before. `controls` counts the control messages that have not ended: a session that is held is claimed for them.
ALTER TABLE sessions ADD COLUMN parked_at INTEGER
  CHECK (parked_at IS NULL OR (turn_id IS NOT NULL AND lease_id IS NULL));
ALTER TABLE sessions ADD COLUMN parked_ms INTEGER NOT NULL DEFAULT 0 CHECK (parked_ms >= 0);
ALTER TABLE sessions ADD COLUMN controls INTEGER NOT NULL DEFAULT 0 CHECK (controls >= 0);

UPDATE sessions SET controls = (
  SELECT count(*) FROM mailbox AS m WHERE m.session_id = sessions.id AND m.ended IS NULL AND m.verdict = 'control');

-- `withdraws` is the position of the message that a control message asks to take back.
ALTER TABLE mailbox RENAME TO mailbox_before;

CREATE TABLE mailbox (
  session_id      INTEGER NOT NULL REFERENCES sessions (id),
  position        INTEGER NOT NULL,
  job_id          TEXT    NOT NULL,
  mode            TEXT    NOT NULL
    CHECK (mode = 'followup' OR mode = 'collect' OR mode = 'steer' OR mode = 'interrupt' OR mode = 'cancel' OR
           mode = 'withdraw'),
  key             TEXT,
  text            TEXT    NOT NULL,
  at              INTEGER NOT NULL,
  verdict         TEXT    NOT NULL
    CHECK (verdict = 'accepted' OR verdict = 'merged' OR verdict = 'steered' OR verdict = 'interrupting' OR
           verdict = 'control'),
  turn_id         TEXT    NOT NULL,
  cuts            TEXT,
  debounce_ms     INTEGER NOT NULL DEFAULT 0,
  debounce_max_ms INTEGER NOT NULL DEFAULT 0,
  agent           TEXT    NOT NULL,
  channel         TEXT,
  recipient       TEXT,
  origin          TEXT    NOT NULL,
  customer        TEXT,
  sent_at         INTEGER,
  ended           TEXT
    CHECK (ended = 'turn' OR ended = 'refused' OR ended = 'withdrawn' OR ended = 'control'),
  consumed_by     TEXT,
  withdraws       INTEGER,
  PRIMARY KEY (session_id, position),
  CHECK ((ended IS 'turn') = (consumed_by IS NOT NULL)),
  CHECK (ended IS NULL OR (ended = 'control') = (verdict = 'control')),
  CHECK ((mode IN ('cancel', 'withdraw')) = (verdict = 'control')),
  CHECK ((mode = 'withdraw') = (withdraws IS NOT NULL))
) STRICT, WITHOUT ROWID;

INSERT INTO mailbox (session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms,
                     debounce_max_ms, agent, channel, recipient, origin, customer, sent_at, ended, consumed_by)
SELECT session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms,
       debounce_max_ms, agent, channel, recipient, origin, customer, sent_at, ended, consumed_by
FROM mailbox_before;

DROP TABLE mailbox_before;

CREATE INDEX mailbox_waiting ON mailbox (session_id, position) WHERE ended IS NULL;

CREATE TRIGGER mailbox_ends_once BEFORE UPDATE ON mailbox WHEN OLD.ended IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'a message ends once');
END;

CREATE TRIGGER mailbox_loses_nothing BEFORE DELETE ON mailbox WHEN OLD.ended IS NULL
BEGIN
  SELECT RAISE(ABORT, 'a message that waits is not deleted');
END;

-- Nothing was ever written to the approvals there were.
DROP TABLE approvals;

CREATE TABLE approvals (
  id             TEXT    NOT NULL PRIMARY KEY,
  turn_id        TEXT    NOT NULL REFERENCES turns (id),
  call_id        TEXT    NOT NULL,
  session_id     INTEGER NOT NULL REFERENCES sessions (id),
  tool           TEXT    NOT NULL,
  arguments_hash TEXT    NOT NULL,
  asked_at       INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  decision       TEXT
    CHECK (decision = 'approved' OR decision = 'rejected' OR decision = 'expired' OR decision = 'void'),
  decided_by     TEXT,
  reason         TEXT,
  decided_at     INTEGER,
  UNIQUE (turn_id, call_id),
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_calls (turn_id, call_id),
  CHECK ((decision IS NULL) = (decided_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_open ON approvals (asked_at, id) WHERE decision IS NULL;
CREATE INDEX approvals_in_time ON approvals (asked_at, id);

CREATE TRIGGER approvals_are_decided_once BEFORE UPDATE OF decision ON approvals
WHEN OLD.decision IS NOT NULL
  AND (OLD.decision = 'approved' AND (NEW.decision = 'expired' OR NEW.decision = 'void')) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'an approval is decided once');
END;
