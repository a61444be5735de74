-- Part of accept: what is counted of a batch beside published envelopes, written once at its end.
-- Uses  lib/session_records, accept/messages

local function count(batch, name, n)
  batch.counts[name] = (batch.counts[name] or 0) + n
end

local function write_counts(batch, counters_key)
  for name, n in pairs(batch.counts) do redis.call('HINCRBY', counters_key, name, n) end
end

-- Part of accept: the results of the items, in their order. That of a plain message is a letter, of all others a list.

local function answer(batch, result)
  batch.results[#batch.results + 1] = result
end

-- Answers with a result that waits for the publish: only then is the target's status known. It then becomes the second
-- field of the result, and `finish` is called with it. Until then the result keeps target and `finish` as fields with
-- names, which Redis leaves out: of a table it replies with the numbered fields alone.
local function settle(batch, target, result, finish)
  result.target, result.finish = target, finish
  answer(batch, result)
end

-- Returns {'ok', now, letters, result…} with the statuses as the publish left them, and finishes what waited for them.
local function settled_results(batch)
  local results = batch.results
  results[3] = letters_of(batch)
  for i = 4, #results do
    local result = results[i]
    if result.target then result[2] = result.target.status end
    if result.finish then result.finish(result[2]) end
  end
  return results
end

-- Part of accept: what is asked of agents. A record is read once a batch, and written at its end where it
-- was changed.

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
