-- The record of an undecided session, a member of its target's pending set: `session requester created_at expires_at`,
-- times in ms. A decided session is no member, nor is one that gave way to newer ones.

-- Returns the member.
local function format_pending(session_id, requester, created_at, expires_at)
  return session_id .. ' ' .. requester .. ' ' .. created_at .. ' ' .. expires_at
end

-- Returns whether a member's time has run out.
local function is_expired(member, now)
  return tonumber(string.match(member, '%d+$')) <= now
end

-- Returns whether the session of a member still waits for its target's decision.
local function is_pending(pending_key, member, now)
  return not is_expired(member, now) and redis.call('ZSCORE', pending_key, member) ~= false
end

-- Returns the members that still wait, oldest first, and removes those whose time has run out.
local function read_pending(pending_key, now)
  local live = {}
  for _, member in ipairs(redis.call('ZRANGE', pending_key, 0, -1)) do
    if is_expired(member, now) then redis.call('ZREM', pending_key, member) else live[#live + 1] = member end
  end
  return live
end
