-- Part of accept: the credentials that an agent registered with, for those who look it up. They are written with the route,
-- so that what is kept is what the agent's owner registered with.
-- Uses  lib/time, lib/credential

-- Of three credentials, forgets the one that was registered with longest ago.
local function forget_oldest_credential(credential_key)
  local kept = redis.call('HGETALL', credential_key)
  if #kept <= 4 then return end
  local oldest, oldest_at
  for i = 1, #kept, 2 do
    local registered_at = registration_of(kept[i + 1])
    if not oldest_at or registered_at < oldest_at then oldest, oldest_at = kept[i], registered_at end
  end
  redis.call('HDEL', credential_key, oldest)
end

-- Keeps the credential of a register, which replaces that of the same key and, of two others, the older one. A heartbeat
-- has none, and keeps those that are there. They are forgotten with the presence of their agent, or at `last_end`, when the last of them ends.
local function keep_credential(batch, credential_key, last_end, key_id, token)
  if key_id and not batch.is_short then
    redis.call('HSET', credential_key, key_id, format_credential(batch.now_text, token))
    forget_oldest_credential(credential_key)
  end
  local forget_at = math.min(batch.now + batch.forget_after, tonumber(last_end))
  redis.call('PEXPIREAT', credential_key, digits(forget_at))
end
