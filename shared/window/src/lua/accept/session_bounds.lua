-- Part of accept: what bounds session requests.

-- Returns functions that judge a newcomer, and the bounds of what is kept, by name. `joined` is ARGV 8 of accept.
local function make_session_bounds(batch, joined)
  local numbers = {}
  for number in string.gmatch(joined, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  local most_pending, most_of_requester, most_opened, opened_window = unpack(numbers, 1, 4)
  local bounds = { most_decided = numbers[5], decided_kept = numbers[6] }

  -- Returns the place of the pending session that gives way to a newcomer, or nil: the requester's own oldest beyond its
  -- share; at a full target the oldest of the principal with the most there, the newcomer's own unless another has more.
  function bounds.place_that_gives_way(pending, newcomer)
    local own, held, first = {}, {}, {}
    for place, session in ipairs(pending) do
      if session.requester == newcomer.requester then own[#own + 1] = place end
      held[session.principal] = (held[session.principal] or 0) + 1
      first[session.principal] = first[session.principal] or place
    end
    if #own >= most_of_requester then return own[1] end
    if #pending < most_pending then return nil end
    local largest, most = newcomer.principal, held[newcomer.principal] or 0
    for principal, count in pairs(held) do
      local is_earlier = count == most and largest ~= newcomer.principal and first[principal] < first[largest]
      if count > most or is_earlier then largest, most = principal, count end
    end
    return first[largest]
  end

  -- Returns why who has opened as many as it may within a minute has to wait, or nil.
  local function wait_to_open(key, elsewhere, most, limit)
    local opened = (redis.call('GET', key) or 0) + elsewhere
    if opened < most then return nil end
    local left = redis.call('PTTL', key)
    return { 'rate_limited', limit, left > 0 and left or opened_window }
  end

  -- Counts one more that is opened.
  function bounds.count_opened(newcomer)
    for _, key in ipairs({ newcomer.opened_key, newcomer.principal_opened_key }) do
      if redis.call('INCRBY', key, 1) == 1 then redis.call('PEXPIRE', key, opened_window) end
    end
  end

  -- Returns how many sessions pend besides the one that makes room, if it does.
  local function count_pending(key, elsewhere, makes_room)
    return redis.call('ZCOUNT', key, '(' .. batch.now_text, '+inf') + elsewhere - (makes_room and 1 or 0)
  end

  -- Returns why the newcomer has to wait, or nil, and writes nothing. What is elsewhere was counted before, in the others.
  function bounds.wait_of(newcomer, gives_way)
    local opened, by_principal = newcomer.opened_key, newcomer.principal_opened_key
    local wait = wait_to_open(opened, newcomer.opened_elsewhere, most_opened, 'opened_sessions')
      or wait_to_open(by_principal, newcomer.principal_opened_elsewhere, newcomer.principal_opens_most, 'key_opened_sessions')
    if wait then return wait end
    local makes_room = gives_way and gives_way.principal == newcomer.principal
    local held = count_pending(newcomer.principal_key, newcomer.held_elsewhere, makes_room)
    if held >= newcomer.principal_holds_most then return { 'rate_limited', 'pending_sessions', opened_window } end
    if not newcomer.agent_key then return nil end
    makes_room = makes_room and gives_way.requester == newcomer.requester
    local own = count_pending(newcomer.agent_key, newcomer.agent_holds_elsewhere, makes_room)
    -- Agents of an issuer may be strangers to each other: none has more than its share of what the others leave.
    local left = newcomer.principal_holds_most - (held - own)
    if own >= math.ceil(left / newcomer.agents_share) then
      return { 'rate_limited', 'agent_pending_sessions', opened_window }
    end
  end

  return bounds
end
