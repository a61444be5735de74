-- Marks the routes of connections that read too slowly, or clears their marks, unless a newer owner has them.
--
-- Uses  lib/route
-- KEYS  1 route
-- ARGV  agent, owner (pod and connection, and the epoch unless it is for any) and mark (`!`, or nothing to clear it) of a
--       route, then of the next
-- Returns how many routes were written
local route_key = KEYS[1]

local written = 0
for i = 1, #ARGV, 3 do
  local agent, owner, mark = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local record = redis.call('HGET', route_key, agent)
  if is_owned(record, owner) then
    local route, since = parse_route(record), parse_since(record)
    redis.call('HSET', route_key, agent,
      format_route(route.pod, route.connection, route.epoch, route.seen_at, since, mark))
    written = written + 1
  end
end
return written
