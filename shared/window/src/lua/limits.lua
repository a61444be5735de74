-- Limits that all processes share.

--- use_limit
-- Counts requests against a limit, in a fixed window of time that the first request begins. A late call counts requests
-- that were refused before. So nobody gets more than the limit.
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

--- lease_shares
-- Gives one pod a share of each limit for a while, or extends it. The first command needs no memory, so that a full
-- Redis runs the others.
--
-- Uses  lib/time
-- KEYS  shares of a limit, then those of the next
-- ARGV  1 pod, 2 lease ms
-- Returns how many pods share each limit, this one included
local pod, lease = ARGV[1], tonumber(ARGV[2])

local now = read_time()
local holders = {}
for i, shares_key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', shares_key, '-inf', digits(now))
  redis.call('ZADD', shares_key, digits(now + lease), pod)
  redis.call('PEXPIRE', shares_key, lease)
  holders[i] = redis.call('ZCARD', shares_key)
end
return holders
