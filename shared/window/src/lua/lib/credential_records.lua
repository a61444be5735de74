-- The record of an agent's credentials: a line `key_id token` for each, the newest first. It expires with the agent's
-- presence, or at `last_end`, when the last credential ends.
-- Uses  lib/time

-- Returns when the record expires, as text.
local function credentials_end(batch, last_end)
  return digits(math.min(batch.now + batch.forget_after, tonumber(last_end)))
end

-- Writes the record. Returns the reply of SET, which takes further options after `lines`.
local function keep_credentials(batch, credential_key, last_end, lines, ...)
  return redis.call('SET', credential_key, lines, 'PXAT', credentials_end(batch, last_end), ...)
end
