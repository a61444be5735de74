-- What the items of a batch share: counts, results, and the pending sessions of targets. Counts and sessions are
-- written once, at the end.
-- Uses  lib/session_records, accept/plain_messages

local function count(batch, name, n)
  batch.counts[name] = (batch.counts[name] or 0) + n
end

local function write_counts(batch, counters_key)
  for name, n in pairs(batch.counts) do redis.call('HINCRBY', counters_key, name, n) end
end

-- Adds an item's result. Results have the order of the items. A plain message has a letter instead.

local function answer(batch, result)
  batch.results[#batch.results + 1] = result
end

-- Adds a result that needs the target's status after the publish. The status becomes its second field, and `finish` is
-- called with it. Redis does not return the named fields target and finish.
local function settle(batch, target, result, finish)
  result.target, result.finish = target, finish
  answer(batch, result)
end

-- Returns {'ok', now, letters, result…} with the statuses after the publish, and calls what waited for them.
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

-- Returns {proof, pending} of a target by name, read once a batch.
local function pending_of(batch, key)
  batch.records = batch.records or make_session_records(batch.now)
  batch.pending_by_key = batch.pending_by_key or {}
  batch.pending_changed = batch.pending_changed or {}
  batch.pending_by_key[key] = batch.pending_by_key[key] or batch.records.read_pending(key)
  return batch.pending_by_key[key]
end

-- Removes an undecided session that ends now from the counts of its principal and its requester. Its own key would fill
-- Redis until it expires. Failures are ignored: while a cluster moves the slot, a key that was not passed in cannot be
-- written if it is not there, and all of these keys expire.
local function end_session(batch, session, principal_prefix, session_prefix)
  redis.pcall('ZREM', principal_prefix .. session.principal, session.name)
  redis.pcall('ZREM', principal_prefix .. batch.records.agent_id(session.requester), session.name)
  redis.pcall('PEXPIRE', session_prefix .. session.name, batch.session_kept)
end

-- Writes the records that changed. A proof counts for `proof_fresh` ms.
local function write_pending(batch, proof_fresh)
  for key in pairs(batch.pending_changed) do
    local record, ends_at = batch.records.format_pending(batch.pending_by_key[key], proof_fresh)
    if record then redis.call('SET', key, record, 'PXAT', ends_at) else redis.call('PEXPIREAT', key, 1) end
  end
end
