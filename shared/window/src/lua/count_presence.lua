-- Counts the agents of one partition by presence; the cost does not grow with their number.
--
-- Uses  lib/time
-- KEYS  1 presence, 2 online
-- ARGV  1 stale after ms, 2 critical stale after ms, 3 offline after ms, 4 forget after ms
-- Returns {online, stale, critical stale, offline}
local presence_key, online_key = KEYS[1], KEYS[2]
local stale_after, critical_after = tonumber(ARGV[1]), tonumber(ARGV[2])
local offline_after, forget_after = tonumber(ARGV[3]), tonumber(ARGV[4])

local now = read_time()
local function seen_within(key, age)
  return redis.call('ZCOUNT', key, digits(now - age), '+inf')
end

local online = seen_within(online_key, stale_after)
local not_critical = seen_within(presence_key, math.min(critical_after, offline_after))
local not_offline = seen_within(presence_key, offline_after)
local known = seen_within(presence_key, forget_after)
return { online, not_critical - online, not_offline - not_critical, known - not_offline }
