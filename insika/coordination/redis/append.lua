-- Appends a batch of events to the stream and gives each its number; with no events, tells the last number.
--
-- KEYS: the stream; what was last sent by this sender.
-- ARGV: how many entries to keep, about; the batch's name; the highest number the sender knows; then the events.
-- Answers the number of the stream's last entry.
--
-- A number is the time in microseconds by this Redis, or one more than the last number, whichever is higher. So numbers
-- go on growing when the stream is flushed or lost, which forgets the last one; the sender's highest number takes care
-- of a clock that was set back as well. They stay exact in a double, which is what JavaScript and Lua count with, as
-- long as they are below 2^53: in microseconds that is the year 2255.
--
-- Each entry names the number before it (0: none, the stream is new), so that a reader sees where entries are missing.

local LARGEST = 9007199254740991

local stream, sent = KEYS[1], KEYS[2]
local keep, batch, known = ARGV[1], ARGV[2], tonumber(ARGV[3])
local FIRST = 4

local function last_number()
  if redis.call('EXISTS', stream) == 0 then
    return 0
  end
  local info = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      return tonumber(string.match(info[i + 1], '^%d+'))
    end
  end
end

local last = last_number()
-- The same batch again: it was written, but the sender did not hear of it.
if #ARGV < FIRST or redis.call('GET', sent) == batch then
  return last
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local number = math.max(last, known, now - 1)
if number + #ARGV > LARGEST then
  return redis.error_reply('EXHAUSTED the numbers of the event stream have reached their end')
end
for i = FIRST, #ARGV do
  number = number + 1
  local id, before = string.format('%.0f-0', number), string.format('%.0f', last)
  redis.call('XADD', stream, 'MAXLEN', '~', keep, id, 'before', before, 'event', ARGV[i])
  last = number
end
redis.call('SET', sent, batch, 'EX', 60)
return last
