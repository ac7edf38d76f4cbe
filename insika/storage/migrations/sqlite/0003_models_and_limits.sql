-- What hosted models want back, what a turn's agents made of it, and what was spent and told of.

-- An assistant message with calls as its provider wants it back (JSON). Sent again only while its turn runs.
ALTER TABLE messages ADD COLUMN verbatim TEXT CHECK (verbatim IS NULL OR tool_calls IS NOT NULL);

-- `agent` is the one that has the turn now, after `depth` times of being handed on. `routes`: what each of its agents
-- made of it, in that order, null for one whose classifier failed. `model` answered last, or is to.
ALTER TABLE turns ADD COLUMN model TEXT;
ALTER TABLE turns ADD COLUMN depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0);
ALTER TABLE turns ADD COLUMN routes TEXT NOT NULL DEFAULT '[]' CHECK (json_array_length(routes) <= depth + 1);

-- Spend is the sum of settled model calls, by tenant, agent and the day in UTC in which they began. `rolled_up`: this
-- one is in the sum of its day already.
ALTER TABLE model_calls ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE model_calls ADD COLUMN rolled_up INTEGER NOT NULL DEFAULT 0
  CHECK (rolled_up = 0 OR (rolled_up = 1 AND state <> 'open'));

UPDATE model_calls SET tenant = (SELECT s.tenant FROM sessions AS s WHERE s.id = model_calls.session_id)
WHERE session_id IN (SELECT id FROM sessions WHERE tenant <> '');

CREATE INDEX model_calls_to_sum_up ON model_calls (tenant, agent, started_at) WHERE rolled_up = 0;

CREATE TABLE spend_days (
  tenant TEXT    NOT NULL,
  agent  TEXT    NOT NULL,
  day    INTEGER NOT NULL,  -- since 1970
  tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent, day)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER model_calls_are_added_up_once BEFORE UPDATE OF rolled_up ON model_calls WHEN OLD.rolled_up = 1
BEGIN
  SELECT RAISE(ABORT, 'a model call is added up once');
END;

CREATE TRIGGER model_calls_count_where_they_began BEFORE UPDATE OF tenant, agent, started_at ON model_calls
BEGIN
  SELECT RAISE(ABORT, 'a model call counts where it began');
END;

-- What is measured only after its estimate was added up.
CREATE TRIGGER model_calls_correct_their_day AFTER UPDATE OF input, output, cache_read, cache_write ON model_calls
WHEN OLD.rolled_up = 1
BEGIN
  UPDATE spend_days SET tokens = tokens
    + NEW.input + NEW.output + NEW.cache_read + NEW.cache_write
    - OLD.input - OLD.output - OLD.cache_read - OLD.cache_write
  WHERE tenant = OLD.tenant AND agent = OLD.agent AND day = OLD.started_at / 86400000000;
END;

-- Every alert that was ever raised, so that none is raised twice, whether it is sent to anybody or not.
CREATE TABLE alerts (
  key       TEXT    NOT NULL PRIMARY KEY,
  raised_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
