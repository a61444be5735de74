-- Removes the routes of connections that are gone, unless a newer owner has them.
--
-- Uses  lib/route
-- KEYS  1 online, 2 route
-- ARGV  pairs of agent and owner: pod and connection, and the epoch unless the release is for any
-- Returns how many routes were removed
local online_key, route_key = KEYS[1], KEYS[2]

local released = 0
for i = 1, #ARGV, 2 do
  if release_route(route_key, online_key, ARGV[i], ARGV[i + 1]) then released = released + 1 end
end
return released
