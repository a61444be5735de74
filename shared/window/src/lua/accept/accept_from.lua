-- Part of accept: whom agents accept envelopes from, as their registers say.
-- Uses  lib/accept_from, accept/asked, accept/unwanted

-- Returns the words that are kept (lib/accept_from), or '' for everyone.
local function accept_from_of(batch, agent)
  return batch.some_choose and words_of(redis.call('HGET', batch.accept_from_key, agent)) or ''
end

-- Keeps it in place of what was said before; '' is everyone.
local function keep_accept_from(batch, agent, epoch, words)
  if words ~= '' then
    redis.call('HSET', batch.accept_from_key, agent, epoch .. words)
    redis.call('HSET', batch.window_key, 'accept_from', 1)
    batch.some_choose = true
  elseif batch.some_choose then redis.call('HDEL', batch.accept_from_key, agent) end
  batch.targets[agent] = nil
end

-- Ends the pending sessions that others requested. Those that pend are looked at again whenever they are told: one may have been
-- requested while Redis, having lost it, did not know whom the agent accepts.
local function end_unwanted_sessions(batch, agent, asked_key, principal_prefix, session_prefix)
  local asked, wanted = asked_of(batch, asked_key), {}
  for _, session in ipairs(asked.pending) do
    if is_unwanted(batch, agent, batch.records.agent_id(session.requester), session.principal) then
      end_session(batch, session, principal_prefix, session_prefix)
    else wanted[#wanted + 1] = session end
  end
  if #wanted == #asked.pending then return end
  asked.pending = wanted
  batch.asked_changed[asked_key] = true
end
