-- Counts requests against a limit, in windows of its own: the first request begins one. A call that comes late counts
-- requests that were refused before, so nobody has more of a limit by it.
--
-- KEYS  limit
-- ARGV  1 requests  2 window s
-- Returns {requests in the window, ms left of it}
local used = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = ARGV[2] * 1000
  redis.call('PEXPIRE', KEYS[1], left)
end
return { used, left }
