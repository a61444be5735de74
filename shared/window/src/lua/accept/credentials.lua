-- Part of accept: the credentials that an agent registered with, for those who look it up. They are written with the route,
-- so that what is kept is what the agent's owner registered with.
-- Uses  lib/time, lib/credential

-- Keeps the credential of a register, and the newest one of another key. A heartbeat has none, and keeps those that are there.
-- They are forgotten with the presence of their agent, or at `last_end`, when the last of them ends.
local function keep_credential(batch, credential_key, last_end, newest)
  local forget_at = digits(math.min(batch.now + batch.forget_after, tonumber(last_end)))
  if not newest or batch.is_short then
    redis.call('PEXPIREAT', credential_key, forget_at)
    return
  end
  -- Nearly every agent registers with its first one: nothing is kept that would have to be read before.
  local kept = redis.call('SET', credential_key, newest, 'GET', 'PXAT', forget_at)
  local other = kept and newest_of_another_key(kept, newest)
  if other then redis.call('SET', credential_key, newest .. '\n' .. other, 'PXAT', forget_at) end
end
