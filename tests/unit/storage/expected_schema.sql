CREATE INDEX applied_revisions_of ON applied_revisions (kind, name, id);

CREATE INDEX approvals_in_time ON approvals (asked_at, id);

CREATE INDEX approvals_open ON approvals (asked_at, id) WHERE decision IS NULL;

CREATE INDEX mailbox_waiting ON mailbox (session_id, position) WHERE ended IS NULL;

CREATE INDEX model_calls_to_sum_up ON model_calls (tenant, agent, started_at) WHERE rolled_up = 0;

CREATE INDEX outbox_claims ON outbox (claim_until) WHERE state = 'delivering';

CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'pending';

CREATE INDEX outbox_lane ON outbox (lane, lane_pos) WHERE state IN ('pending', 'delivering');

CREATE INDEX outbox_of_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX sessions_due ON sessions (due_at) WHERE due_at < 4611686018427387904;

CREATE INDEX turns_of_session ON turns (session_id, position);

CREATE UNIQUE INDEX turns_one_at_a_time ON turns (session_id) WHERE state IN ('running', 'waiting');

CREATE TABLE alerts (
  key       TEXT    NOT NULL PRIMARY KEY,
  raised_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE applied_revisions (
  id       INTEGER PRIMARY KEY,
  kind     TEXT    NOT NULL CHECK (kind IN ('profile', 'settings')),
  name     TEXT    NOT NULL,  -- the profile's; '' for settings
  revision TEXT    NOT NULL,
  source   TEXT    NOT NULL,  -- file:<digest> or operator
  at       INTEGER NOT NULL
) STRICT;

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

CREATE TABLE job_ids (
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  job_id     TEXT    NOT NULL,
  control    INTEGER NOT NULL DEFAULT 0 CHECK (control IN (0, 1)),
  digest     TEXT    NOT NULL,
  seen_at    INTEGER NOT NULL,
  position   INTEGER NOT NULL,
  turn_id    TEXT    NOT NULL,
  PRIMARY KEY (session_id, job_id, control)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE messages (
  session_id   INTEGER NOT NULL REFERENCES sessions (id),
  seq          INTEGER NOT NULL,
  turn_id      TEXT    NOT NULL REFERENCES turns (id),
  epoch        INTEGER NOT NULL,
  step         INTEGER NOT NULL,
  role         TEXT    NOT NULL CHECK (role = 'user' OR role = 'assistant' OR role = 'tool'),
  content      TEXT    NOT NULL,
  tool_calls   TEXT,
  tool_call_id TEXT,
  is_error     INTEGER NOT NULL DEFAULT 0 CHECK (is_error IN (0, 1)),
  batch_open   INTEGER NOT NULL DEFAULT 0 CHECK (batch_open >= 0),
  position     INTEGER CHECK (position IS NULL OR role = 'user'),
  at           INTEGER NOT NULL, verbatim TEXT CHECK (verbatim IS NULL OR tool_calls IS NOT NULL),
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (turn_id, tool_call_id) REFERENCES tool_calls (turn_id, call_id),
  CHECK ((role = 'tool') = (tool_call_id IS NOT NULL)),
  CHECK (tool_calls IS NULL OR role = 'assistant'),
  CHECK (role <> 'assistant' OR (tool_calls IS NOT NULL) = (batch_open > 0)),
  CHECK (role <> 'user' OR batch_open = 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE model_calls (
  turn_id     TEXT    NOT NULL REFERENCES turns (id),
  step        INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  purpose     TEXT    NOT NULL,
  session_id  INTEGER NOT NULL,
  agent       TEXT    NOT NULL,
  model       TEXT    NOT NULL,
  state       TEXT    NOT NULL CHECK (state = 'open' OR state = 'measured' OR state = 'estimated'),
  started_at  INTEGER NOT NULL,  -- the calendar window it is billed to follows from this
  settled_at  INTEGER,
  input       INTEGER NOT NULL DEFAULT 0,
  output      INTEGER NOT NULL DEFAULT 0,
  cache_read  INTEGER NOT NULL DEFAULT 0,
  cache_write INTEGER NOT NULL DEFAULT 0, tenant TEXT NOT NULL DEFAULT '', rolled_up INTEGER NOT NULL DEFAULT 0
  CHECK (rolled_up = 0 OR (rolled_up = 1 AND state <> 'open')),
  PRIMARY KEY (turn_id, step, attempt, purpose),
  CHECK ((state = 'open') = (settled_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  id                 TEXT    NOT NULL PRIMARY KEY,  -- url-safe; goes out as webhook-id
  session_id         INTEGER REFERENCES sessions (id),
  turn_id            TEXT,
  kind               TEXT    NOT NULL,
  channel            TEXT    NOT NULL,
  lane               TEXT    NOT NULL,
  lane_pos           INTEGER NOT NULL,
  recipient          TEXT    NOT NULL,
  payload            TEXT    NOT NULL,
  url                TEXT    NOT NULL,
  guarantee          TEXT    NOT NULL CHECK (guarantee IN ('at_most_once', 'at_least_once')),
  max_attempts       INTEGER NOT NULL CHECK (max_attempts >= 1),
  timeout_s          REAL    NOT NULL CHECK (timeout_s > 0),
  order_wait_s       REAL    NOT NULL CHECK (order_wait_s >= 0),
  state              TEXT    NOT NULL DEFAULT 'pending'
    CHECK (state = 'pending' OR state = 'delivering' OR state = 'delivered' OR state = 'failed' OR
           state = 'uncertain'),
  due_at             INTEGER NOT NULL,
  hold_until         INTEGER,
  claim              TEXT,
  claim_until        INTEGER,
  claimed_at         INTEGER,
  attempts           INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  resends            INTEGER NOT NULL DEFAULT 0 CHECK (resends >= 0),
  tried_before       INTEGER NOT NULL DEFAULT 0,  -- attempts until the last resend; max_attempts counts those after it
  possible_duplicate INTEGER NOT NULL DEFAULT 0 CHECK (possible_duplicate IN (0, 1)),
  last_error         TEXT,
  created_at         INTEGER NOT NULL,
  settled_at         INTEGER,
  unique_key         TEXT    UNIQUE,
  UNIQUE (lane, lane_pos),
  CHECK ((claim IS NULL) = (claimed_at IS NULL)),
  CHECK ((claim IS NULL) = (claim_until IS NULL)),
  CHECK (state <> 'delivering' OR claim IS NOT NULL),
  CHECK (tried_before BETWEEN 0 AND attempts)
) STRICT;

CREATE TABLE profiles (
  revision TEXT NOT NULL PRIMARY KEY,
  name     TEXT NOT NULL,
  data     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rejected_jobs (
  id          INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,
  source      TEXT    NOT NULL,
  raw         BLOB    NOT NULL,
  error       TEXT    NOT NULL,
  requeued_at INTEGER
) STRICT;

CREATE TABLE schema_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  id          INTEGER PRIMARY KEY,
  tenant      TEXT    NOT NULL DEFAULT '',  -- '' is the platform
  name        TEXT    NOT NULL,
  epoch       INTEGER NOT NULL DEFAULT 0,
  lease_id    TEXT,
  lease_until INTEGER,
  due_at      INTEGER NOT NULL DEFAULT 4611686018427387904,
  nudged_at   INTEGER,
  nudges      INTEGER NOT NULL DEFAULT 0,
  paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  mail_seq    INTEGER NOT NULL DEFAULT 0,   -- position of the last accepted message
  urgent_seq  INTEGER NOT NULL DEFAULT 0,   -- position of the last interrupt or cancel
  log_seq     INTEGER NOT NULL DEFAULT 0,   -- place of the last message of the conversation
  lane_seq    INTEGER NOT NULL DEFAULT 0,   -- position of the last delivery, in whichever of its lanes
  waiting     INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  open_calls  INTEGER NOT NULL DEFAULT 0 CHECK (open_calls >= 0),
  turn_id     TEXT,
  turn_key    TEXT,
  merge_turn  TEXT,
  merge_key   TEXT,
  deaths      INTEGER NOT NULL DEFAULT 0,
  load_from   INTEGER NOT NULL DEFAULT 0,
  vars        TEXT    NOT NULL DEFAULT '{}', parked_at INTEGER
  CHECK (parked_at IS NULL OR (turn_id IS NOT NULL AND lease_id IS NULL)), parked_ms INTEGER NOT NULL DEFAULT 0 CHECK (parked_ms >= 0), controls INTEGER NOT NULL DEFAULT 0 CHECK (controls >= 0),
  UNIQUE (tenant, name),
  CHECK ((lease_id IS NULL) = (lease_until IS NULL)),
  CHECK ((merge_turn IS NULL) = (merge_key IS NULL)),
  CHECK (turn_id IS NOT NULL OR (open_calls = 0 AND turn_key IS NULL)),
  CHECK (urgent_seq <= mail_seq)
) STRICT;

CREATE TABLE settings (
  revision TEXT NOT NULL PRIMARY KEY,
  data     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE spend_days (
  tenant TEXT    NOT NULL,
  agent  TEXT    NOT NULL,
  day    INTEGER NOT NULL,  -- since 1970
  tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_calls (
  turn_id      TEXT    NOT NULL REFERENCES turns (id),
  step         INTEGER NOT NULL,
  idx          INTEGER NOT NULL,  -- announced order within the step, from 0
  session_id   INTEGER NOT NULL,
  call_id      TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  arguments    TEXT    NOT NULL,
  side_effect  INTEGER NOT NULL CHECK (side_effect IN (0, 1)),
  state        TEXT    NOT NULL
    CHECK (state = 'announced' OR state = 'started' OR state = 'done' OR state = 'unknown' OR state = 'not_run'),
  result       TEXT,
  is_error     INTEGER NOT NULL DEFAULT 0 CHECK (is_error IN (0, 1)),
  halts        INTEGER NOT NULL DEFAULT 0 CHECK (halts IN (0, 1)),
  announced_at INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  PRIMARY KEY (turn_id, step, idx),
  UNIQUE (turn_id, call_id),
  CHECK ((state = 'done' OR state = 'unknown' OR state = 'not_run') = (result IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
  id               TEXT    NOT NULL PRIMARY KEY,
  session_id       INTEGER NOT NULL REFERENCES sessions (id),
  position         INTEGER NOT NULL,
  state            TEXT    NOT NULL
    CHECK (state = 'queued' OR state = 'running' OR state = 'waiting' OR
           state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'refused'),
  outcome          TEXT,
  attempt          INTEGER NOT NULL DEFAULT 1,
  agent            TEXT    NOT NULL,
  channel          TEXT,
  recipient        TEXT,
  origin           TEXT    NOT NULL,
  profile_revision TEXT,
  limits           TEXT,
  synthesized      INTEGER NOT NULL DEFAULT 0 CHECK (synthesized IN (0, 1)),
  route            TEXT,
  timing           TEXT    NOT NULL DEFAULT '{}',
  error            TEXT,
  started_seq      INTEGER,
  created_at       INTEGER NOT NULL,
  started_at       INTEGER,
  ended_at         INTEGER, model TEXT, depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0), routes TEXT NOT NULL DEFAULT '[]' CHECK (json_array_length(routes) <= depth + 1),
  CHECK ((ended_at IS NOT NULL) =
         (state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'refused')),
  CHECK (NOT (state = 'running' OR state = 'waiting' OR state = 'completed') OR started_at IS NOT NULL)
) STRICT;

CREATE TRIGGER approvals_are_decided_once BEFORE UPDATE OF decision ON approvals
WHEN OLD.decision IS NOT NULL
  AND (OLD.decision = 'approved' AND (NEW.decision = 'expired' OR NEW.decision = 'void')) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'an approval is decided once');
END;

CREATE TRIGGER mailbox_ends_once BEFORE UPDATE ON mailbox WHEN OLD.ended IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'a message ends once');
END;

CREATE TRIGGER mailbox_loses_nothing BEFORE DELETE ON mailbox WHEN OLD.ended IS NULL
BEGIN
  SELECT RAISE(ABORT, 'a message that waits is not deleted');
END;

CREATE TRIGGER messages_are_not_changed BEFORE UPDATE ON messages
BEGIN
  SELECT RAISE(ABORT, 'a message that was said is not changed');
END;

CREATE TRIGGER messages_are_not_deleted BEFORE DELETE ON messages
BEGIN
  SELECT RAISE(ABORT, 'a message that was said is not deleted');
END;

CREATE TRIGGER messages_stay_valid BEFORE INSERT ON messages
WHEN NEW.seq < 1
  OR (NEW.seq = 1 AND NEW.role = 'tool')
  OR (NEW.seq > 1 AND NOT EXISTS (
    SELECT 1 FROM messages AS last
    WHERE last.session_id = NEW.session_id AND last.seq = NEW.seq - 1
      AND CASE NEW.role WHEN 'tool' THEN last.batch_open = NEW.batch_open + 1 ELSE last.batch_open = 0 END))
BEGIN
  SELECT RAISE(ABORT, 'a conversation grows at its tail, and a batch is answered before anything else is said');
END;

CREATE TRIGGER model_calls_are_added_up_once BEFORE UPDATE OF rolled_up ON model_calls WHEN OLD.rolled_up = 1
BEGIN
  SELECT RAISE(ABORT, 'a model call is added up once');
END;

CREATE TRIGGER model_calls_are_measured_once BEFORE UPDATE OF state ON model_calls
WHEN OLD.state = 'measured' OR NEW.state = 'open'
BEGIN
  SELECT RAISE(ABORT, 'what a model call cost is measured once');
END;

CREATE TRIGGER model_calls_correct_their_day AFTER UPDATE OF input, output, cache_read, cache_write ON model_calls
WHEN OLD.rolled_up = 1
BEGIN
  UPDATE spend_days SET tokens = tokens
    + NEW.input + NEW.output + NEW.cache_read + NEW.cache_write
    - OLD.input - OLD.output - OLD.cache_read - OLD.cache_write
  WHERE tenant = OLD.tenant AND agent = OLD.agent AND day = OLD.started_at / 86400000000;
END;

CREATE TRIGGER model_calls_count_where_they_began BEFORE UPDATE OF tenant, agent, started_at ON model_calls
BEGIN
  SELECT RAISE(ABORT, 'a model call counts where it began');
END;

CREATE TRIGGER outbox_counts_up BEFORE UPDATE OF attempts, resends, possible_duplicate ON outbox
WHEN NEW.attempts < OLD.attempts OR NEW.resends < OLD.resends OR NEW.possible_duplicate < OLD.possible_duplicate
BEGIN
  SELECT RAISE(ABORT, 'what was tried is not forgotten');
END;

CREATE TRIGGER outbox_does_not_go_back BEFORE UPDATE OF state ON outbox
WHEN NOT CASE OLD.state
  WHEN 'pending'    THEN NEW.state = 'pending' OR NEW.state = 'delivering' OR NEW.state = 'failed'
  WHEN 'delivering' THEN NEW.state <> 'delivering'
  WHEN 'uncertain'  THEN NEW.state IN ('uncertain', 'delivered') OR (NEW.state = 'pending' AND NEW.resends = OLD.resends + 1)
  WHEN 'failed'     THEN NEW.state = 'failed' OR (NEW.state = 'pending' AND NEW.resends = OLD.resends + 1)
  WHEN 'delivered'  THEN NEW.state = 'delivered'
END
BEGIN
  SELECT RAISE(ABORT, 'a delivery does not go back');
END;

CREATE TRIGGER outbox_is_frozen
BEFORE UPDATE OF id, session_id, turn_id, kind, channel, lane, recipient, payload, url, guarantee ON outbox
BEGIN
  SELECT RAISE(ABORT, 'what is to be delivered, and where, is frozen');
END;

CREATE TRIGGER profiles_are_immutable BEFORE UPDATE ON profiles
BEGIN
  SELECT RAISE(ABORT, 'a revision is immutable');
END;

CREATE TRIGGER settings_are_immutable BEFORE UPDATE ON settings
BEGIN
  SELECT RAISE(ABORT, 'a revision is immutable');
END;

CREATE TRIGGER tool_calls_go_forward BEFORE UPDATE OF state ON tool_calls
WHEN OLD.state = 'done' OR OLD.state = 'unknown' OR OLD.state = 'not_run' OR NEW.state = 'announced'
  OR (OLD.state = 'started' AND NEW.state = 'started')
BEGIN
  SELECT RAISE(ABORT, 'a call starts once and ends once');
END;

CREATE TRIGGER turns_never_leave_their_end BEFORE UPDATE OF state ON turns
WHEN OLD.state = 'completed' OR OLD.state = 'failed' OR OLD.state = 'cancelled' OR OLD.state = 'refused'
  OR (NEW.state = 'queued' AND OLD.state <> 'queued')
BEGIN
  SELECT RAISE(ABORT, 'a turn does not leave its end, nor return to the queue');
END;

