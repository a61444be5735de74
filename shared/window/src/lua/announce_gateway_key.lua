-- Lists the public key of a gateway that lives, and drops those of gateways long gone.
--
-- Uses  lib/time, lib/gateway_key
-- KEYS  1 gateway keys
-- ARGV  1 key id, 2 public key, 3 ms a key stays listed after its gateway was last seen
-- Returns 'ok'
local keys_key = KEYS[1]
local key_id, public_key, listed_for = ARGV[1], ARGV[2], tonumber(ARGV[3])

local now = read_time()
redis.call('HSET', keys_key, key_id, format_gateway_key(public_key, now))
local listed = redis.call('HGETALL', keys_key)
for i = 1, #listed, 2 do
  local _, seen_at = parse_gateway_key(listed[i + 1])
  if now - seen_at > listed_for then redis.call('HDEL', keys_key, listed[i]) end
end
return 'ok'
