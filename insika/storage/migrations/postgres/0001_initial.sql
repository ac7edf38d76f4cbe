-- The store's tables, for PostgreSQL 15 and newer.
--
-- Times are timestamptz: '-infinity' is "due now", 'infinity' is "never". Names and ids are compared byte by byte
-- (COLLATE "C"). The columns of a session row decide; everything keyed by the session is written under its row.
-- States are guarded here a second time: by CHECK and UNIQUE, and transitions by triggers.
--
-- json, not jsonb, holds what is handed on as it came: jsonb would sort its keys, and the requests to a model must
-- begin with the same bytes each time.

-- The one source of time. VOLATILE: each call in a statement is a moment of its own, and none can bound the scan of an
-- index; `(SELECT insika_now())` is evaluated once in a statement, and can.
CREATE FUNCTION insika_now() RETURNS timestamptz
LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- What a guard says when it stops a write. Such an error is no reason to try again.
CREATE FUNCTION insika_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'integrity_constraint_violation';
END $$;

-- Takes back the statement that calls it, and says why by its code: IN001, what it names was not there; IN002, a call of
-- its batch was never answered. Used where a statement has found, by what its own parts wrote, that it must not be.
CREATE FUNCTION insika_undo(code text, why text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = why, ERRCODE = code;
END $$;

-- Room is left in each page, so that an update that touches no indexed column stays there and touches no index.
CREATE TABLE sessions (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant      text        COLLATE "C" NOT NULL DEFAULT '',  -- '' is the platform
  name        text        COLLATE "C" NOT NULL,
  epoch       integer     NOT NULL DEFAULT 0,
  lease_id    text        COLLATE "C",
  lease_until timestamptz,
  due_at      timestamptz NOT NULL DEFAULT 'infinity',
  nudged_at   timestamptz,
  nudges      integer     NOT NULL DEFAULT 0,
  paused      boolean     NOT NULL DEFAULT false,
  mail_seq    bigint      NOT NULL DEFAULT 0,   -- position of the last accepted message
  urgent_seq  bigint      NOT NULL DEFAULT 0,   -- position of the last interrupt or cancel
  log_seq     bigint      NOT NULL DEFAULT 0,   -- place of the last message of the conversation
  lane_seq    bigint      NOT NULL DEFAULT 0,   -- position of the last delivery, in whichever of its lanes
  waiting     integer     NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  open_calls  integer     NOT NULL DEFAULT 0 CHECK (open_calls >= 0),
  turn_id     text        COLLATE "C",
  turn_key    text        COLLATE "C",
  merge_turn  text        COLLATE "C",
  merge_key   text        COLLATE "C",
  deaths      integer     NOT NULL DEFAULT 0,
  load_from   bigint      NOT NULL DEFAULT 0,
  vars        jsonb       NOT NULL DEFAULT '{}',
  UNIQUE (tenant, name),
  CHECK ((lease_id IS NULL) = (lease_until IS NULL)),
  CHECK ((merge_turn IS NULL) = (merge_key IS NULL)),
  CHECK (turn_id IS NOT NULL OR (open_calls = 0 AND turn_key IS NULL)),
  CHECK (urgent_seq <= mail_seq)
) WITH (fillfactor = 70);

CREATE INDEX sessions_due ON sessions (due_at, id) WHERE due_at < 'infinity';

-- `control` separates the ids of cancel requests from the ids of jobs.
CREATE TABLE job_ids (
  session_id bigint      NOT NULL REFERENCES sessions (id),
  job_id     text        COLLATE "C" NOT NULL,
  control    boolean     NOT NULL DEFAULT false,
  digest     text        COLLATE "C" NOT NULL,
  seen_at    timestamptz NOT NULL,
  position   bigint      NOT NULL,
  turn_id    text        COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, job_id, control)
);

-- `number` is the order in which turns were made known.
CREATE TABLE turns (
  id               text        COLLATE "C" PRIMARY KEY,
  number           bigint      GENERATED ALWAYS AS IDENTITY UNIQUE,
  session_id       bigint      NOT NULL REFERENCES sessions (id),
  position         bigint      NOT NULL,
  state            text        NOT NULL CHECK (state IN
    ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'refused')),
  outcome          text,
  attempt          integer     NOT NULL DEFAULT 1,
  agent            text        NOT NULL,
  channel          text,
  recipient        text,
  origin           text        NOT NULL,
  profile_revision text,
  limits           json,
  synthesized      boolean     NOT NULL DEFAULT false,
  route            text,
  timing           json        NOT NULL DEFAULT '{}',
  error            json,
  started_seq      bigint,
  created_at       timestamptz NOT NULL,
  started_at       timestamptz,
  ended_at         timestamptz,
  CHECK ((ended_at IS NOT NULL) = (state IN ('completed', 'failed', 'cancelled', 'refused'))),
  CHECK (state NOT IN ('running', 'waiting', 'completed') OR started_at IS NOT NULL)
);

CREATE UNIQUE INDEX turns_one_at_a_time ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_of_session ON turns (session_id, number);

CREATE TRIGGER turns_never_leave_their_end BEFORE UPDATE OF state ON turns FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled', 'refused')
  OR (NEW.state = 'queued' AND OLD.state <> 'queued'))
EXECUTE FUNCTION insika_refuse('a turn does not leave its end, nor return to the queue');

CREATE TABLE mailbox (
  session_id      bigint      NOT NULL REFERENCES sessions (id),
  position        bigint      NOT NULL,
  job_id          text        COLLATE "C" NOT NULL,
  mode            text        NOT NULL CHECK (mode IN ('followup', 'collect', 'steer', 'interrupt', 'cancel')),
  key             text        COLLATE "C",
  text            text        NOT NULL,
  at              timestamptz NOT NULL,
  verdict         text        NOT NULL
    CHECK (verdict IN ('accepted', 'merged', 'steered', 'interrupting', 'control')),
  turn_id         text        COLLATE "C" NOT NULL,
  cuts            text        COLLATE "C",
  debounce_ms     bigint      NOT NULL DEFAULT 0,
  debounce_max_ms bigint      NOT NULL DEFAULT 0,
  agent           text        NOT NULL,
  channel         text,
  recipient       text,
  origin          text        NOT NULL,
  customer        text,
  sent_at         timestamptz,
  ended           text        CHECK (ended IN ('turn', 'refused', 'withdrawn', 'control')),
  consumed_by     text        COLLATE "C",
  PRIMARY KEY (session_id, position),
  CHECK ((ended IS NOT DISTINCT FROM 'turn') = (consumed_by IS NOT NULL)),
  CHECK (ended IS NULL OR (ended = 'control') = (verdict = 'control')),
  CHECK ((mode = 'cancel') = (verdict = 'control'))
);

CREATE INDEX mailbox_waiting ON mailbox (session_id, position) WHERE ended IS NULL;

CREATE TRIGGER mailbox_ends_once BEFORE UPDATE ON mailbox FOR EACH ROW WHEN (OLD.ended IS NOT NULL)
EXECUTE FUNCTION insika_refuse('a message ends once');

CREATE TRIGGER mailbox_loses_nothing BEFORE DELETE ON mailbox FOR EACH ROW WHEN (OLD.ended IS NULL)
EXECUTE FUNCTION insika_refuse('a message that waits is not deleted');

CREATE TABLE tool_calls (
  turn_id      text        COLLATE "C" NOT NULL REFERENCES turns (id),
  step         integer     NOT NULL,
  idx          integer     NOT NULL,  -- announced order within the step, from 0
  session_id   bigint      NOT NULL,
  call_id      text        COLLATE "C" NOT NULL,
  name         text        NOT NULL,
  arguments    json        NOT NULL,
  side_effect  boolean     NOT NULL,
  state        text        NOT NULL CHECK (state IN ('announced', 'started', 'done', 'unknown', 'not_run')),
  result       text,
  is_error     boolean     NOT NULL DEFAULT false,
  halts        boolean     NOT NULL DEFAULT false,
  announced_at timestamptz NOT NULL,
  started_at   timestamptz,
  ended_at     timestamptz,
  PRIMARY KEY (turn_id, step, idx),
  UNIQUE (turn_id, call_id),
  CHECK ((state IN ('done', 'unknown', 'not_run')) = (result IS NOT NULL))
) WITH (fillfactor = 85);

CREATE TRIGGER tool_calls_go_forward BEFORE UPDATE OF state ON tool_calls FOR EACH ROW
WHEN (OLD.state IN ('done', 'unknown', 'not_run') OR NEW.state = 'announced'
  OR (OLD.state = 'started' AND NEW.state = 'started'))
EXECUTE FUNCTION insika_refuse('a call starts once and ends once');

-- `batch_open` is how many results are still to come after this message. It lets the row before vouch for the next:
-- whatever writes here, the conversation is valid at every instant. A statement that writes several messages must
-- insert them in the order of `seq`.
CREATE TABLE messages (
  session_id   bigint      NOT NULL REFERENCES sessions (id),
  seq          bigint      NOT NULL,
  turn_id      text        COLLATE "C" NOT NULL REFERENCES turns (id),
  epoch        integer     NOT NULL,
  step         integer     NOT NULL,
  role         text        NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  content      text        NOT NULL,
  tool_calls   json,
  tool_call_id text        COLLATE "C",
  is_error     boolean     NOT NULL DEFAULT false,
  batch_open   integer     NOT NULL DEFAULT 0 CHECK (batch_open >= 0),
  position     bigint      CHECK (position IS NULL OR role = 'user'),
  at           timestamptz NOT NULL,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (turn_id, tool_call_id) REFERENCES tool_calls (turn_id, call_id),
  CHECK ((role = 'tool') = (tool_call_id IS NOT NULL)),
  CHECK (tool_calls IS NULL OR role = 'assistant'),
  CHECK (role <> 'assistant' OR (tool_calls IS NOT NULL) = (batch_open > 0)),
  CHECK (role <> 'user' OR batch_open = 0)
);

CREATE FUNCTION insika_message_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before integer;
BEGIN
  IF NEW.seq > 1 THEN
    SELECT last.batch_open INTO before FROM messages AS last
    WHERE last.session_id = NEW.session_id AND last.seq = NEW.seq - 1;
  ELSIF NEW.seq = 1 THEN
    before := 0;
  END IF;
  IF (CASE NEW.role WHEN 'tool' THEN before = NEW.batch_open + 1 ELSE before = 0 END) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
      MESSAGE = 'a conversation grows at its tail, and a batch is answered before anything else is said';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER messages_stay_valid BEFORE INSERT ON messages FOR EACH ROW
EXECUTE FUNCTION insika_message_follows();

CREATE TRIGGER messages_are_not_changed BEFORE UPDATE ON messages FOR EACH ROW
EXECUTE FUNCTION insika_refuse('a message that was said is not changed');

CREATE TRIGGER messages_are_not_deleted BEFORE DELETE ON messages FOR EACH ROW
EXECUTE FUNCTION insika_refuse('a message that was said is not deleted');

CREATE TABLE model_calls (
  turn_id     text        COLLATE "C" NOT NULL REFERENCES turns (id),
  step        integer     NOT NULL,
  attempt     integer     NOT NULL,
  purpose     text        COLLATE "C" NOT NULL,
  session_id  bigint      NOT NULL,
  agent       text        NOT NULL,
  model       text        NOT NULL,
  state       text        NOT NULL CHECK (state IN ('open', 'measured', 'estimated')),
  started_at  timestamptz NOT NULL,  -- the calendar window it is billed to follows from this
  settled_at  timestamptz,
  input       bigint      NOT NULL DEFAULT 0,
  output      bigint      NOT NULL DEFAULT 0,
  cache_read  bigint      NOT NULL DEFAULT 0,
  cache_write bigint      NOT NULL DEFAULT 0,
  PRIMARY KEY (turn_id, step, attempt, purpose),
  CHECK ((state = 'open') = (settled_at IS NULL))
) WITH (fillfactor = 85);

CREATE TRIGGER model_calls_are_measured_once BEFORE UPDATE OF state ON model_calls FOR EACH ROW
WHEN (OLD.state = 'measured' OR NEW.state = 'open')
EXECUTE FUNCTION insika_refuse('what a model call cost is measured once');

CREATE TABLE approvals (
  turn_id        text        COLLATE "C" NOT NULL REFERENCES turns (id),
  call_id        text        COLLATE "C" NOT NULL,
  session_id     bigint      NOT NULL,
  tool           text        NOT NULL,
  arguments_hash text        COLLATE "C" NOT NULL,
  asked_at       timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL,
  decision       text        CHECK (decision IN ('approved', 'rejected', 'expired', 'void')),
  decided_by     text,
  reason         text,
  decided_at     timestamptz,
  PRIMARY KEY (turn_id, call_id),
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_calls (turn_id, call_id),
  CHECK ((decision IS NULL) = (decided_at IS NULL))
);

CREATE TRIGGER approvals_are_decided_once BEFORE UPDATE OF decision ON approvals FOR EACH ROW
WHEN (OLD.decision IS NOT NULL
  AND (OLD.decision = 'approved' AND NEW.decision IN ('expired', 'void')) IS NOT TRUE)
EXECUTE FUNCTION insika_refuse('an approval is decided once');

-- One row is one delivery. `lane_pos` comes from the session's `lane_seq`; a row without a session has a lane of its own.
CREATE TABLE outbox (
  id                 text             COLLATE "C" PRIMARY KEY,  -- url-safe; goes out as webhook-id
  session_id         bigint           REFERENCES sessions (id),
  turn_id            text             COLLATE "C",
  kind               text             NOT NULL,
  channel            text             NOT NULL,
  lane               text             COLLATE "C" NOT NULL,
  lane_pos           bigint           NOT NULL,
  recipient          text             NOT NULL,
  payload            json             NOT NULL,
  url                text             NOT NULL,
  guarantee          text             NOT NULL CHECK (guarantee IN ('at_most_once', 'at_least_once')),
  max_attempts       integer          NOT NULL CHECK (max_attempts >= 1),
  timeout_s          double precision NOT NULL CHECK (timeout_s > 0),
  order_wait_s       double precision NOT NULL CHECK (order_wait_s >= 0),
  state              text             NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'delivering', 'delivered', 'failed', 'uncertain')),
  due_at             timestamptz      NOT NULL,
  hold_until         timestamptz,
  claim              text             COLLATE "C",
  claim_until        timestamptz,
  claimed_at         timestamptz,
  attempts           integer          NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  resends            integer          NOT NULL DEFAULT 0 CHECK (resends >= 0),
  tried_before       integer          NOT NULL DEFAULT 0,  -- attempts until the last resend; max_attempts counts those after it
  possible_duplicate boolean          NOT NULL DEFAULT false,
  last_error         text,
  created_at         timestamptz      NOT NULL,
  settled_at         timestamptz,
  unique_key         text             COLLATE "C" UNIQUE,
  UNIQUE (lane, lane_pos),
  CHECK ((claim IS NULL) = (claimed_at IS NULL)),
  CHECK ((claim IS NULL) = (claim_until IS NULL)),
  CHECK (state <> 'delivering' OR claim IS NOT NULL),
  CHECK (tried_before BETWEEN 0 AND attempts)
);

CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'pending';
CREATE INDEX outbox_lane ON outbox (lane, lane_pos) WHERE state IN ('pending', 'delivering');
CREATE INDEX outbox_claims ON outbox (claim_until) WHERE state = 'delivering';
CREATE INDEX outbox_holds ON outbox (hold_until) WHERE state IN ('pending', 'delivering') AND hold_until IS NOT NULL;
CREATE INDEX outbox_of_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;

CREATE TRIGGER outbox_does_not_go_back BEFORE UPDATE OF state ON outbox FOR EACH ROW
WHEN (NOT CASE OLD.state
  WHEN 'pending'    THEN NEW.state IN ('pending', 'delivering', 'failed')
  WHEN 'delivering' THEN NEW.state <> 'delivering'
  WHEN 'uncertain'  THEN NEW.state IN ('uncertain', 'delivered') OR (NEW.state = 'pending' AND NEW.resends = OLD.resends + 1)
  WHEN 'failed'     THEN NEW.state = 'failed' OR (NEW.state = 'pending' AND NEW.resends = OLD.resends + 1)
  WHEN 'delivered'  THEN NEW.state = 'delivered'
END)
EXECUTE FUNCTION insika_refuse('a delivery does not go back');

CREATE TRIGGER outbox_counts_up BEFORE UPDATE OF attempts, resends, possible_duplicate ON outbox FOR EACH ROW
WHEN (NEW.attempts < OLD.attempts OR NEW.resends < OLD.resends OR NEW.possible_duplicate < OLD.possible_duplicate)
EXECUTE FUNCTION insika_refuse('what was tried is not forgotten');

CREATE TRIGGER outbox_is_frozen
BEFORE UPDATE OF id, session_id, turn_id, kind, channel, lane, recipient, payload, url, guarantee ON outbox FOR EACH ROW
EXECUTE FUNCTION insika_refuse('what is to be delivered, and where, is frozen');

-- Revisions never change. Which one is current is the newest row of applied_revisions for its kind and name.
CREATE TABLE profiles (
  revision text COLLATE "C" PRIMARY KEY,
  name     text COLLATE "C" NOT NULL,
  data     json NOT NULL
);

CREATE TABLE settings (
  revision text COLLATE "C" PRIMARY KEY,
  data     json NOT NULL
);

CREATE TABLE applied_revisions (
  id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind     text        COLLATE "C" NOT NULL CHECK (kind IN ('profile', 'settings')),
  name     text        COLLATE "C" NOT NULL,  -- the profile's; '' for settings
  revision text        COLLATE "C" NOT NULL,
  source   text        NOT NULL,  -- file:<digest> or operator
  at       timestamptz NOT NULL
);

CREATE INDEX applied_revisions_of ON applied_revisions (kind, name, id);

CREATE TRIGGER profiles_are_immutable BEFORE UPDATE ON profiles FOR EACH ROW
EXECUTE FUNCTION insika_refuse('a revision is immutable');

CREATE TRIGGER settings_are_immutable BEFORE UPDATE ON settings FOR EACH ROW
EXECUTE FUNCTION insika_refuse('a revision is immutable');

CREATE TABLE rejected_jobs (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz NOT NULL,
  source      text        NOT NULL,
  raw         bytea       NOT NULL,
  error       json        NOT NULL,
  requeued_at timestamptz
);
