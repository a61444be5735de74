-- Counts requests against limits, each in windows of its own: the first request begins one. A call that comes late counts
-- requests that were refused meanwhile, so that nobody has more of a limit by it.
--
-- KEYS  limit, then the next ones
-- ARGV  1 window ms, then how many requests use each limit
-- Returns {requests in the window, ms left of it} for each limit
local window = ARGV[1]

local usages = {}
for i, limit_key in ipairs(KEYS) do
  local used = redis.call('INCRBY', limit_key, ARGV[i + 1])
  local left = redis.call('PTTL', limit_key)
  if left < 0 then
    redis.call('PEXPIRE', limit_key, window)
    left = tonumber(window)
  end
  usages[i] = { used, left }
end
return usages
