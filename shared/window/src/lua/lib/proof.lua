-- The record of an accepted session request: `session requester target accepted_at status source`, accepted_at in ms.

-- Returns the record. `status` is the target's delivery status then.
local function format_proof(session_id, requester, target, accepted_at, status, source)
  return table.concat({ session_id, requester, target, accepted_at, status, source }, ' ')
end
