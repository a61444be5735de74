-- Counts requests against a limit, in windows of its own: the first request begins one. A call that comes late counts
-- requests that were refused before, so nobody has more of a limit by it.
--
-- KEYS  1 limit
-- ARGV  1 requests, 2 window s
-- Returns {requests in the window, ms left of it}
local limit_key = KEYS[1]
local requests, window = ARGV[1], ARGV[2]

local used = redis.call('INCRBY', limit_key, requests)
local left = redis.call('PTTL', limit_key)
if left < 0 then
  left = window * 1000
  redis.call('PEXPIRE', limit_key, left)
end
return { used, left }
