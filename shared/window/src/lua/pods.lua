-- What pods tell of themselves under a lease.

--- renew_lease
-- Publishes a pod's message to itself, and renews its lease in the partition. If no pod could renew its lease for a
-- while, the partition was away, not the pods: then all leases begin again. So no living pod loses its lease when a
-- slot moves or a replica takes over. The first command needs no memory, so that a full Redis runs the others.
--
-- Uses  lib/time
-- KEYS  1 pods
-- ARGV  1 pod, 2 ms after which a lease is over, 3 ms without a renewal after which all begin again: longer than this pod waited
--       before it tried, 4 ms that leases are kept, 5 channel, 6 message
-- Returns how many heard the message
local pods_key = KEYS[1]
local pod, lease, gap, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local channel, message = ARGV[5], ARGV[6]

local now = read_time()
local newest = redis.call('ZRANGE', pods_key, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIRE', pods_key, kept)
if newest and now - newest > gap then
  for _, other in ipairs(redis.call('ZRANGE', pods_key, 0, -1)) do redis.call('ZADD', pods_key, digits(now), other) end
end
redis.call('ZADD', pods_key, digits(now), pod)
redis.call('ZREMRANGEBYSCORE', pods_key, '-inf', '(' .. digits(now - lease))
return redis.call('SPUBLISH', channel, message)

--- lease_connections
-- Keeps how many connections a pod has, until its lease is over, and removes what pods said whose leases are over. The
-- first command needs no memory, so that a full Redis runs the others.
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
