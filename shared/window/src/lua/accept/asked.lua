-- Part of accept: what is asked of agents. A record is read once a batch, and written at its end where it
-- was changed.
-- Uses  lib/session_records

-- Returns {proof, pending} by name.
local function asked_of(batch, key)
  batch.records = batch.records or make_session_records(batch.now)
  batch.asked = batch.asked or {}
  batch.asked_changed = batch.asked_changed or {}
  batch.asked[key] = batch.asked[key] or batch.records.read_asked(key)
  return batch.asked[key]
end

-- Takes a session that ends now, undecided, off the counts of its principal and of its requester; kept until its expiry its own key
-- would fill Redis. Passed over where it fails: on a cluster that moves the slot a key that is not passed in cannot be written
-- while it is not there, and all of these end by themselves.
local function end_session(batch, session, principal_prefix, session_prefix)
  redis.pcall('ZREM', principal_prefix .. session.principal, session.name)
  redis.pcall('ZREM', principal_prefix .. batch.records.agent_id(session.requester), session.name)
  redis.pcall('PEXPIRE', session_prefix .. session.name, batch.session_kept)
end

-- Writes the records that were changed. A proof counts for `proof_fresh` ms.
local function write_asked(batch, proof_fresh)
  for key in pairs(batch.asked_changed) do
    local record, ends_at = batch.records.format_asked(batch.asked[key], proof_fresh)
    if record then redis.call('SET', key, record, 'PXAT', ends_at) else redis.call('PEXPIREAT', key, 1) end
  end
end
