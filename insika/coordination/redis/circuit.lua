#!lua
-- One step of one circuit.
--
-- KEYS: its state, a hash that is only there while the circuit is not closed; its failures while it is, oldest first.
-- ARGV: the time in ms, "" for the time of this Redis; the operation; a trial's token, "" for none; what else it needs.
-- Answers a list that begins with what the circuit is, or did.
--
-- Failures are a list of times, not counts by bucket: `after` within `within` is then exact, for any number of agents
-- with numbers of their own, and a look at one entry.

local DAY = 86400000
local MOST_FAILURES = 100000
local LINGERS = 30000

local function own_time()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local state, failures = KEYS[1], KEYS[2]
local now, operation, token = tonumber(ARGV[1]) or own_time(), ARGV[2], ARGV[3]

local function number(field)
  return tonumber(redis.call('HGET', state, field) or nil)
end

-- The trial under way has this token, and is not over yet.
local function on_trial()
  return token ~= '' and redis.call('HGET', state, 'token') == token and now < number('trial_until')
end

local function open(cooldown, reopened)
  redis.call('DEL', failures, state)
  redis.call('HSET', state, 'opened_at', now, 'open_until', now + cooldown)
  redis.call('PEXPIRE', state, cooldown + DAY)
  return {'tripped', now, reopened}
end

local operations = {}

function operations.before(lives)
  local open_until = number('open_until')
  if not open_until then
    return {'closed'}
  end
  if now < open_until then
    return {'open', open_until - now}
  end
  local trial_until = number('trial_until')
  if trial_until and now < trial_until then
    return {'open', trial_until - now}
  end
  redis.call('HSET', state, 'token', token, 'trial_until', now + lives)
  redis.call('PEXPIRE', state, lives + DAY)
  return {'trial'}
end

function operations.succeeded()
  if on_trial() then
    redis.call('DEL', state)
  end
  return {'heard'}
end

function operations.abandoned()
  if on_trial() then
    redis.call('HDEL', state, 'token', 'trial_until')
  end
  return {'heard'}
end

function operations.failed(cooldown, after, within)
  if token ~= '' then
    return on_trial() and open(cooldown, 1) or {'heard'}
  end
  if redis.call('EXISTS', state) == 1 then
    return {'heard'}
  end
  redis.call('RPUSH', failures, now)
  redis.call('LTRIM', failures, -MOST_FAILURES, -1)
  while now - redis.call('LINDEX', failures, 0) > DAY do
    redis.call('LPOP', failures)
  end
  redis.call('PEXPIRE', failures, math.max(redis.call('PTTL', failures), within + LINGERS))
  local oldest = redis.call('LINDEX', failures, -after)
  return oldest and now - oldest <= within and open(cooldown, 0) or {'heard'}
end

return operations[operation](tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
