-- The agents of one partition that are counted for a principal, those seen last first.
--
-- KEYS  1 agents of the principal
-- ARGV  1 most of them
-- Returns {how many there are, agent, last seen, then the next agent}
local agents_key, most = KEYS[1], tonumber(ARGV[1])

local reply = redis.call('ZRANGE', agents_key, 0, most - 1, 'REV', 'WITHSCORES')
table.insert(reply, 1, redis.call('ZCARD', agents_key))
return reply
