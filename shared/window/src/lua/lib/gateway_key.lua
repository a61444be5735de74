-- The record of a gateway's public key: `public_key seen_at`, seen_at in ms.

-- Returns the record.
local function format_gateway_key(public_key, seen_at)
  return string.format('%s %.0f', public_key, seen_at)
end

-- Returns the public key, and when its gateway was last seen, in ms.
local function parse_gateway_key(record)
  local public_key, seen_at = string.match(record, '^(%S+) (%d+)$')
  return public_key, tonumber(seen_at)
end
