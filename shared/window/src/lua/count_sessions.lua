-- Counts what a newcomer's bounds are about, in a partition that is not its target's.
--
-- Uses  lib/time
-- KEYS  1 principal, 2 opened by the requester
-- ARGV  none
-- Returns {sessions that the principal has pending here, sessions that the requester opened here within a minute}
local principal_key, opened_key = KEYS[1], KEYS[2]

local now = read_time()
return { redis.call('ZCOUNT', principal_key, '(' .. digits(now), '+inf'), tonumber(redis.call('GET', opened_key) or 0) }
