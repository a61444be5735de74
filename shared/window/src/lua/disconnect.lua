-- Has the connection of an agent closed: asks the pod that has it. Nothing is written here: the pod releases the routes, as
-- whenever a connection closes.
--
-- Uses  lib/channel_line, lib/deadline, lib/route, lib/time
-- KEYS  1 window, 2 route
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 agent
-- Returns {'late', now}, {'window'} when the window is another one or none, nothing being done of either, or
--   {'ok', 1} when the agent's pod heard it, {'ok', 0} when nobody did, or no connection has the agent
local window_key, route_key = KEYS[1], KEYS[2]
local deadline, window_id, channel_prefix, agent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end
local record = redis.call('HGET', route_key, agent)
if not record then return { 'ok', 0 } end
local route = parse_route(record)
local line = format_line('disconnect', route.connection, route.epoch, agent)
return { 'ok', redis.call('SPUBLISH', channel_prefix .. route.pod, line) }
