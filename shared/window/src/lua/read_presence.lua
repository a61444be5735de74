-- Presence of one agent.
--
-- Uses  lib/route, lib/time
-- KEYS  1 presence, 2 route
-- ARGV  1 agent
-- Returns {now, last seen or '', since when the connection that has the agent holds it, its mark (lib/route)}; the last two
--   are '' when none has it
local presence_key, route_key = KEYS[1], KEYS[2]
local agent = ARGV[1]

local now = read_time()
local route = redis.call('HGET', route_key, agent)
local last_seen = redis.call('ZSCORE', presence_key, agent)
local since, mark = '', ''
if route then since, mark = parse_since(route) end
return { digits(now), last_seen or '', since, mark }
