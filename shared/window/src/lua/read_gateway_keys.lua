-- The public keys of the gateways that were seen lately.
--
-- Uses  lib/time, lib/gateway_key
-- KEYS  1 gateway keys
-- ARGV  1 ms a key stays listed after its gateway was last seen
-- Returns key id and public key in turn
local keys_key = KEYS[1]
local listed_for = tonumber(ARGV[1])

local now = read_time()
local live = {}
local listed = redis.call('HGETALL', keys_key)
for i = 1, #listed, 2 do
  local public_key, seen_at = parse_gateway_key(listed[i + 1])
  if now - seen_at <= listed_for then
    live[#live + 1] = listed[i]
    live[#live + 1] = public_key
  end
end
return live
