-- The public keys of the gateways that were seen lately.
--
-- KEYS  1 gateway keys
-- ARGV  1 ms a key stays listed after its gateway was last seen
-- Returns key id and public key in turn
local keys_key = KEYS[1]
local listed_for = tonumber(ARGV[1])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = {}
local listed = redis.call('HGETALL', keys_key)
for i = 1, #listed, 2 do
  local public_key, last_seen = string.match(listed[i + 1], '^(%S+) (%d+)$')
  if now - tonumber(last_seen) <= listed_for then
    live[#live + 1] = listed[i]
    live[#live + 1] = public_key
  end
end
return live
