-- Counts what a newcomer's bounds are about, in a partition that is not its target's.
--
-- Uses  lib/time
-- KEYS  1 principal, 2 requester as a principal below its issuer, 3 opened by the requester, 4 opened by the principal
-- ARGV  none
-- Returns {sessions that the principal has pending here, those that the requester has, sessions that the requester opened here
-- within a minute, those that the principal opened}
local principal_key, agent_key, opened_key, principal_opened_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local now = read_time()
return {
  redis.call('ZCOUNT', principal_key, '(' .. digits(now), '+inf'),
  redis.call('ZCOUNT', agent_key, '(' .. digits(now), '+inf'),
  tonumber(redis.call('GET', opened_key) or 0),
  tonumber(redis.call('GET', principal_opened_key) or 0),
}
