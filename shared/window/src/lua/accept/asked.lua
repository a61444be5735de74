-- Part of accept: what is asked of agents. A record is read once a batch, and written at its end by who changed it.
-- Uses  lib/session_records

-- Returns {proof, pending} by name.
local function asked_of(batch, key)
  batch.records = batch.records or make_session_records(batch.now)
  batch.asked = batch.asked or {}
  batch.asked[key] = batch.asked[key] or batch.records.read_asked(key)
  return batch.asked[key]
end
