-- Has one pod share each of these limits for a while, beginning or going on. What writes first takes no memory, so that a full
-- Redis lets the rest pass.
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
