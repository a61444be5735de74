-- Agents of one partition with their presence, by their ids.
--
-- Uses  lib/route, lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 agents of a principal
-- ARGV  1 '1' to pass over those that are counted for the principal, else '0', then ids
-- Returns {now, agent, last seen or '', since when the connection that has the agent holds it, its mark (lib/route), then the next
--   agent}; since and mark are '' when no connection has it, or its pod was not heard last
local presence_key, online_key, route_key, agents_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local passes_over_counted = ARGV[1] == '1'

local reply = { digits(read_time()) }

local function add(agent)
  local route = redis.call('HGET', route_key, agent)
  local since, mark = '', ''
  if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
  local n = #reply
  reply[n + 1], reply[n + 2] = agent, redis.call('ZSCORE', presence_key, agent) or ''
  reply[n + 3], reply[n + 4] = since, mark
end

for i = 2, #ARGV do
  if not passes_over_counted or not redis.call('ZSCORE', agents_key, ARGV[i]) then add(ARGV[i]) end
end
return reply
