#!lua
-- Counts attempts and reads tokens for all checks of a turn's beginning, as one step.
--
-- KEYS: of each check, whose window it looks at. ARGV: the time in ms, "" for the time of this Redis; then of each
-- check its kind, the window in ms, the limit and the turn.
-- Answers the time, then of each check what is counted and when the window ends, in ms.
--
-- A hash says itself of which window it is (`ends`), and is begun anew in another one. So the time to live of a key only
-- clears away; it is a little longer than the window, and no reading can tell.

local BEYOND = 1000
local LINGERS = 30000
local ARGUMENTS = 4

local function own_time()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local now = tonumber(ARGV[1]) or own_time()

-- Each turn keeps the number that it was counted as. Far beyond the limit it does not, which bounds what is kept: there
-- it is blocked in any case, and counting it each time does no harm.
local function attempt(key, ends, limit, turn)
  if redis.call('HGET', key, 'ends') ~= string.format('%.0f', ends) then
    redis.call('UNLINK', key)
    redis.call('HSET', key, 'ends', string.format('%.0f', ends))
    redis.call('PEXPIRE', key, ends - now + LINGERS)
  end
  local known = redis.call('HGET', key, 'turn:' .. turn)
  if known then
    return tonumber(known)
  end
  local number = redis.call('HINCRBY', key, 'count', 1)
  if number <= limit + BEYOND then
    redis.call('HSET', key, 'turn:' .. turn, number)
  end
  return number
end

local function spent(key, ends)
  local known = redis.call('HMGET', key, 'ends', 'spent')
  return known[1] == string.format('%.0f', ends) and tonumber(known[2] or 0) or 0
end

local answer = {now}
for i, key in ipairs(KEYS) do
  local first = 2 + (i - 1) * ARGUMENTS
  local kind, window, limit, turn = ARGV[first], tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), ARGV[first + 3]
  local ends = (math.floor(now / window) + 1) * window
  answer[#answer + 1] = kind == 'attempt' and attempt(key, ends, limit, turn) or spent(key, ends)
  answer[#answer + 1] = ends
end
return answer
