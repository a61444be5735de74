-- The record of an accepted session request: `session requester target accepted_at status source`, accepted_at in ms, and
-- ` within` where both agents answer to one principal.

-- Returns the record. `status` is the target's delivery status then; `is_within` is of both agents.
local function format_proof(session_id, requester, target, accepted_at, status, source, is_within)
  local words = { session_id, requester, target, accepted_at, status, source }
  if is_within then words[#words + 1] = 'within' end
  return table.concat(words, ' ')
end
