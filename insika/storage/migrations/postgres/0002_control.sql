-- What people ask of a session beside talking to it: taking a message back, deciding about a call, holding it.

-- `parked_at`: since when a turn has had no owner because it was let go on purpose; `parked_ms`: for how long that was
-- so before. `controls` counts the control messages that have not ended: a session that is held is claimed for them.
ALTER TABLE sessions
  ADD COLUMN parked_at timestamptz,
  ADD COLUMN parked_ms bigint  NOT NULL DEFAULT 0 CHECK (parked_ms >= 0),
  ADD COLUMN controls  integer NOT NULL DEFAULT 0 CHECK (controls >= 0),
  ADD CHECK (parked_at IS NULL OR (turn_id IS NOT NULL AND lease_id IS NULL));

UPDATE sessions AS s SET controls = open.controls
FROM (SELECT session_id, count(*) AS controls FROM mailbox WHERE ended IS NULL AND verdict = 'control' GROUP BY 1) AS open
WHERE s.id = open.session_id;

-- `withdraws` is the position of the message that a control message asks to take back.
ALTER TABLE mailbox
  DROP CONSTRAINT mailbox_mode_check,
  DROP CONSTRAINT mailbox_check2,  -- that a cancel, and nothing else, is a control message
  ADD COLUMN withdraws bigint,
  ADD CONSTRAINT mailbox_mode_check
    CHECK (mode IN ('followup', 'collect', 'steer', 'interrupt', 'cancel', 'withdraw')),
  ADD CHECK ((mode IN ('cancel', 'withdraw')) = (verdict = 'control')),
  ADD CHECK ((mode = 'withdraw') = (withdraws IS NOT NULL));

-- `asked`: a person was asked whether the call may run. It stands in the call's own row, for what a statement that had
-- to wait sees in other tables is what was there before.
ALTER TABLE tool_calls ADD COLUMN asked boolean NOT NULL DEFAULT false;

-- Nothing was ever written to the approvals there were.
DROP TABLE approvals;

CREATE TABLE approvals (
  id             text        COLLATE "C" PRIMARY KEY,
  turn_id        text        COLLATE "C" NOT NULL REFERENCES turns (id),
  call_id        text        COLLATE "C" NOT NULL,
  session_id     bigint      NOT NULL REFERENCES sessions (id),
  tool           text        NOT NULL,
  arguments_hash text        COLLATE "C" NOT NULL,
  asked_at       timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL,
  decision       text        CHECK (decision IN ('approved', 'rejected', 'expired', 'void')),
  decided_by     text,
  reason         text,
  decided_at     timestamptz,
  UNIQUE (turn_id, call_id),
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_calls (turn_id, call_id),
  CHECK ((decision IS NULL) = (decided_at IS NULL))
);

CREATE INDEX approvals_open ON approvals (asked_at, id) WHERE decision IS NULL;
CREATE INDEX approvals_in_time ON approvals (asked_at, id);

CREATE TRIGGER approvals_are_decided_once BEFORE UPDATE OF decision ON approvals FOR EACH ROW
WHEN (OLD.decision IS NOT NULL
  AND (OLD.decision = 'approved' AND NEW.decision IN ('expired', 'void')) IS NOT TRUE)
EXECUTE FUNCTION insika_refuse('an approval is decided once');
