-- Public keys and credentials that others look up.

--- announce_gateway_key
-- Lists the public key of a living gateway, and removes those of gateways that were not seen for long. The record of a
-- gateway is `public_key seen_at`, in ms.
--
-- Uses  lib/time
-- KEYS  1 gateway keys
-- ARGV  1 key id, 2 public key, 3 ms a key stays listed after its gateway was last seen
-- Returns 'ok'
local keys_key = KEYS[1]
local key_id, public_key, listed_for = ARGV[1], ARGV[2], tonumber(ARGV[3])

local now = read_time()
redis.call('HSET', keys_key, key_id, public_key .. ' ' .. digits(now))
local listed = redis.call('HGETALL', keys_key)
for i = 1, #listed, 2 do
  local seen_at = string.match(listed[i + 1], '%d+$')
  if now - seen_at > listed_for then redis.call('HDEL', keys_key, listed[i]) end
end
return 'ok'

--- read_gateway_keys
-- The public keys of the gateways that were seen lately.
--
-- Uses  lib/time
-- KEYS  1 gateway keys
-- ARGV  1 ms a key stays listed after its gateway was last seen
-- Returns key id and public key in turn
local keys_key = KEYS[1]
local listed_for = tonumber(ARGV[1])

local now = read_time()
local live = {}
local listed = redis.call('HGETALL', keys_key)
for i = 1, #listed, 2 do
  local public_key, seen_at = string.match(listed[i + 1], '^(%S+) (%d+)$')
  if now - seen_at <= listed_for then
    live[#live + 1] = listed[i]
    live[#live + 1] = public_key
  end
end
return live

--- read_credentials
-- The credentials of one agent. An agent that nobody has seen has none.
--
-- KEYS  1 credential, 2 presence
-- ARGV  1 agent
-- Returns their lines (lib/credential_records), or nil
local credential_key, presence_key = KEYS[1], KEYS[2]
local agent = ARGV[1]

if not redis.call('ZSCORE', presence_key, agent) then return nil end
return redis.call('GET', credential_key)
