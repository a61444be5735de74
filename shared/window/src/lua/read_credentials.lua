-- The credentials of one agent that the relay knows: none for an agent that nobody has seen.
--
-- KEYS  1 credential, 2 presence
-- ARGV  1 agent
-- Returns their lines (lib/credential), or nil
local credential_key, presence_key = KEYS[1], KEYS[2]
local agent = ARGV[1]

if not redis.call('ZSCORE', presence_key, agent) then return nil end
return redis.call('GET', credential_key)
