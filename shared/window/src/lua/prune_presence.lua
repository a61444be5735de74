-- Forgets agents that were not seen for long; bounded, so that it never holds Redis up.
--
-- Uses  lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 accept from
-- ARGV  1 forget after ms, 2 most agents a call
-- Returns how many were forgotten
local presence_key, online_key, route_key, accept_from_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local forget_after, most = tonumber(ARGV[1]), tonumber(ARGV[2])

local now = read_time()
local agents = redis.call('ZRANGE', presence_key, '-inf', '(' .. digits(now - forget_after), 'BYSCORE', 'LIMIT', 0, most)
if #agents == 0 then return 0 end
redis.call('ZREM', presence_key, unpack(agents))
redis.call('ZREM', online_key, unpack(agents))
redis.call('HDEL', route_key, unpack(agents))
redis.call('HDEL', accept_from_key, unpack(agents))
return #agents
