-- Tells how many connections a pod has, until its lease is over; what pods told whose leases are over goes. The first write
-- takes no memory, so that a full Redis lets the rest pass.
--
-- Uses  lib/time
-- KEYS  1 connections
-- ARGV  1 pod, 2 how many it has, 3 lease ms
-- Returns 'ok'
local connections_key = KEYS[1]
local pod, connections, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])

local now = read_time()
redis.call('PEXPIRE', connections_key, lease)
redis.call('HSET', connections_key, pod, connections .. ' ' .. digits(now + lease))
redis.call('PEXPIRE', connections_key, lease)
local told = redis.call('HGETALL', connections_key)
for i = 1, #told, 2 do
  if tonumber(string.match(told[i + 1], '%d+$')) < now then redis.call('HDEL', connections_key, told[i]) end
end
return 'ok'
