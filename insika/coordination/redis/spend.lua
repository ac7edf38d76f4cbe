#!lua
-- Adds what model calls have cost to the windows of their agents, each call once.
--
-- KEYS: of each call, its agent's window, the newest calls known there, and older ones. ARGV: the time in ms, "" for the
-- time of this Redis; then of each call the window in ms, its name and its tokens.
-- Answers how many calls it was given.
--
-- Of calls the newest are known: when so many are, the older ones are forgotten and these become the older ones. About
-- `ends` and the time to live see admit.lua.

local KNOWN = 20000
local LINGERS = 30000
local EACH = 3

local function own_time()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local now = tonumber(ARGV[1]) or own_time()

local function spend(key, calls, older, ends, call, tokens)
  if redis.call('HGET', key, 'ends') ~= string.format('%.0f', ends) then
    redis.call('UNLINK', key, calls, older)
    redis.call('HSET', key, 'ends', string.format('%.0f', ends))
    redis.call('PEXPIRE', key, ends - now + LINGERS)
  end
  if redis.call('SISMEMBER', calls, call) == 1 or redis.call('SISMEMBER', older, call) == 1 then
    return
  end
  if redis.call('SCARD', calls) >= KNOWN then
    redis.call('UNLINK', older)
    redis.call('RENAME', calls, older)
  end
  redis.call('SADD', calls, call)
  redis.call('PEXPIRE', calls, ends - now + LINGERS)
  redis.call('HINCRBY', key, 'spent', tokens)
end

for i = 1, #KEYS, EACH do
  local window = tonumber(ARGV[i + 1])
  local ends = (math.floor(now / window) + 1) * window
  spend(KEYS[i], KEYS[i + 1], KEYS[i + 2], ends, ARGV[i + 2], ARGV[i + 3])
end
return {#KEYS / EACH}
