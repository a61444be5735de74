-- Presence of one agent.
--
-- KEYS  1 presence, 2 online
-- ARGV  1 agent
-- Returns {now, last seen or '', '1' when a connection has the agent, else ''}
local presence_key, online_key = KEYS[1], KEYS[2]
local agent = ARGV[1]

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local connected_at = redis.call('ZSCORE', online_key, agent)
local last_seen = redis.call('ZSCORE', presence_key, agent)
return { now, last_seen or '', connected_at and '1' or '' }
