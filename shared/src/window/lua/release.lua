-- Removes routes whose connection is gone. A route is compared by whole words (pod, connection, and the epoch unless the
-- release is for any), so that a late close never removes a newer owner's.
--
-- KEYS  1 online, 2 route
-- ARGV  pairs of agent and route
-- Returns how many routes were removed
local online_key, route_key = KEYS[1], KEYS[2]

local released = 0
for i = 1, #ARGV, 2 do
  local agent, route = ARGV[i], ARGV[i + 1]
  local held = redis.call('HGET', route_key, agent)
  if held and string.sub(held .. ' ', 1, #route + 1) == route .. ' ' then
    redis.call('HDEL', route_key, agent)
    redis.call('ZREM', online_key, agent)
    released = released + 1
  end
end
return released
