-- Part of accept: the credentials that an agent registered with, for those who look it up. They are written with the route,
-- so that what is kept is what the agent's owner registered with.
-- Uses  lib/time, lib/credential

-- Keeps the credential of a register, which replaces that of the same key and, of two others, the older one. A heartbeat
-- has none, and keeps those that are there. They are forgotten with the presence of their agent, or at `last_end`, when the last of them ends.
local function keep_credential(batch, credential_key, last_end, key_id, token)
  if key_id and not batch.is_short then
    local oldest, oldest_at, newest_at = nil, nil, 0
    local kept = redis.call('HGETALL', credential_key)
    for i = 1, #kept, 2 do
      local registered_at = registration_of(kept[i + 1])
      newest_at = math.max(newest_at, registered_at)
      if kept[i] ~= key_id and (not oldest_at or registered_at < oldest_at) then oldest, oldest_at = kept[i], registered_at end
    end
    -- Two may come within a millisecond: the order in which they came counts.
    local registered_at = digits(math.max(batch.now, newest_at + 1))
    if redis.call('HSET', credential_key, key_id, format_credential(registered_at, token)) == 1 and #kept == 4 then
      redis.call('HDEL', credential_key, oldest)
    end
  end
  local forget_at = math.min(batch.now + batch.forget_after, tonumber(last_end))
  redis.call('PEXPIREAT', credential_key, digits(forget_at))
end
