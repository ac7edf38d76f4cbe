-- What hosted models want back, what a turn's agents made of it, and what was spent and told of.

-- An assistant message with calls as its provider wants it back (JSON). Sent again only while its turn runs.
ALTER TABLE messages
  ADD COLUMN verbatim text,
  ADD CHECK (verbatim IS NULL OR tool_calls IS NOT NULL);

-- `agent` is the one that has the turn now, after `depth` times of being handed on. `routes`: what each of its agents
-- made of it, in that order, null for one whose classifier failed. `model` answered last, or is to.
ALTER TABLE turns
  ADD COLUMN model  text,
  ADD COLUMN depth  integer NOT NULL DEFAULT 0 CHECK (depth >= 0),
  ADD COLUMN routes jsonb   NOT NULL DEFAULT '[]',
  ADD CHECK (jsonb_array_length(routes) <= depth + 1);

-- Spend is the sum of settled model calls, by tenant, agent and the day in UTC in which they began. `rolled_up`: this
-- one is in the sum of its day already. To settle a call touches no index.
ALTER TABLE model_calls
  ADD COLUMN tenant    text    COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN rolled_up boolean NOT NULL DEFAULT false,
  ADD CHECK (NOT rolled_up OR state <> 'open');

UPDATE model_calls AS m SET tenant = s.tenant FROM sessions AS s WHERE s.id = m.session_id AND s.tenant <> '';

CREATE INDEX model_calls_to_sum_up ON model_calls (tenant, agent, started_at) WHERE NOT rolled_up;

CREATE TABLE spend_days (
  tenant text   COLLATE "C" NOT NULL,
  agent  text   NOT NULL,
  day    date   NOT NULL,
  tokens bigint NOT NULL,
  PRIMARY KEY (tenant, agent, day)
) WITH (fillfactor = 70);

CREATE TRIGGER model_calls_are_added_up_once BEFORE UPDATE OF rolled_up ON model_calls FOR EACH ROW
WHEN (OLD.rolled_up)
EXECUTE FUNCTION insika_refuse('a model call is added up once');

CREATE TRIGGER model_calls_count_where_they_began BEFORE UPDATE OF tenant, agent, started_at ON model_calls FOR EACH ROW
EXECUTE FUNCTION insika_refuse('a model call counts where it began');

-- What is measured only after its estimate was added up.
CREATE FUNCTION insika_correct_the_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE spend_days AS d SET tokens = d.tokens
    + NEW.input + NEW.output + NEW.cache_read + NEW.cache_write
    - OLD.input - OLD.output - OLD.cache_read - OLD.cache_write
  WHERE d.tenant = OLD.tenant AND d.agent = OLD.agent AND d.day = (OLD.started_at AT TIME ZONE 'UTC')::date;
  RETURN NULL;
END $$;

CREATE TRIGGER model_calls_correct_their_day AFTER UPDATE OF input, output, cache_read, cache_write ON model_calls
FOR EACH ROW WHEN (OLD.rolled_up)
EXECUTE FUNCTION insika_correct_the_day();

-- Every alert that was ever raised, so that none is raised twice, whether it is sent to anybody or not.
CREATE TABLE alerts (
  key       text        COLLATE "C" PRIMARY KEY,
  raised_at timestamptz NOT NULL
);

-- Raises those of the given alerts that nobody has raised before, with their outbox rows, and answers their keys. Who
-- raises the same at this moment waits for the other; all take several in the order of their keys, so that no two wait
-- for each other. A row without a session has a lane of its own.
CREATE FUNCTION insika_raise(asked json, of_turn text) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
  WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) AS a (
      key text, salt text, kind text, channel text, recipient text, payload json, url text, guarantee text,
      max_attempts integer, timeout_s double precision, order_wait_s double precision)
  ), raised AS (
    INSERT INTO alerts (key, raised_at) SELECT key, insika_now() FROM given ORDER BY key COLLATE "C"
    ON CONFLICT (key) DO NOTHING
    RETURNING key
  ), sent AS (
    INSERT INTO outbox (id, turn_id, kind, channel, lane, lane_pos, recipient, payload, url, guarantee, max_attempts,
                        timeout_s, order_wait_s, unique_key, due_at, created_at)
    SELECT named.id, of_turn, g.kind, g.channel, named.id, 1, g.recipient, g.payload, g.url, g.guarantee,
           g.max_attempts, g.timeout_s, g.order_wait_s, g.key, insika_now(), insika_now()
    FROM raised
    JOIN given AS g ON g.key = raised.key AND g.salt IS NOT NULL
    CROSS JOIN LATERAL (
      SELECT 'msg_' || lpad(to_hex((extract(epoch FROM insika_now()) * 1000000)::bigint), 14, '0') || g.salt
    ) AS named (id)
    ON CONFLICT (unique_key) DO NOTHING
  )
  SELECT key FROM raised
$$;
