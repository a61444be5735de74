-- Presence of one agent.
--
-- Uses  lib/route, lib/time
-- KEYS  1 presence, 2 online, 3 route
-- ARGV  1 agent
-- Returns {now, last seen or '', since when the connection that has the agent holds it, its mark (lib/route)}; the last two
--   are '' when none has it, or its pod was not heard last
local presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3]
local agent = ARGV[1]

local now = read_time()
local route = redis.call('HGET', route_key, agent)
local last_seen = redis.call('ZSCORE', presence_key, agent)
local since, mark = '', ''
if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
return { digits(now), last_seen or '', since, mark }
