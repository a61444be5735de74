-- Session requests, session decisions, and messages with a claim.
-- Uses  lib/session_records, lib/time, accept/batch, accept/delivery

-- Returns the functions that judge a new request, and the numbers for what is kept. `joined` is ARGV 8 of accept.
local function make_session_bounds(batch, joined)
  local numbers = {}
  for number in string.gmatch(joined, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  local most_pending, most_of_requester, most_opened, opened_window = unpack(numbers, 1, 4)
  local bounds = { most_decided = numbers[5], decided_kept = numbers[6] }

  -- Returns the place of the pending session that gives way to a new one, or nil. Above the requester's share that is
  -- the requester's oldest. At a full target it is the oldest of the principal with the most sessions there.
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

  -- Returns the refusal of an opener that has opened as many as it may in a minute, or nil.
  local function wait_to_open(key, elsewhere, most, limit)
    local opened = (redis.call('GET', key) or 0) + elsewhere
    if opened < most then return nil end
    local left = redis.call('PTTL', key)
    return { 'rate_limited', limit, left > 0 and left or opened_window }
  end

  -- Counts one more opened session.
  function bounds.count_opened(newcomer)
    for _, key in ipairs({ newcomer.opened_key, newcomer.principal_opened_key }) do
      if redis.call('INCRBY', key, 1) == 1 then redis.call('PEXPIRE', key, opened_window) end
    end
  end

  -- Returns how many sessions are pending, without the one that makes room.
  local function count_pending(key, elsewhere, makes_room)
    return redis.call('ZCOUNT', key, '(' .. batch.now_text, '+inf') + elsewhere - (makes_room and 1 or 0)
  end

  -- Returns why the request must wait, or nil. Writes nothing. `…_elsewhere` was counted in the other partitions
  -- before.
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
    -- Agents of one issuer may be strangers: each may have only its share of what the others leave free.
    local left = newcomer.principal_holds_most - (held - own)
    if own >= math.ceil(left / newcomer.agents_share) then
      return { 'rate_limited', 'agent_pending_sessions', opened_window }
    end
  end

  return bounds
end

-- Returns the record of an accepted request: `session requester target accepted_at status source`, and ` within` if
-- both agents have one principal. `status` is the target's delivery status at acceptance.
local function format_proof(session_id, requester, target, accepted_at, status, source, is_within)
  local words = { session_id, requester, target, accepted_at, status, source }
  if is_within then words[#words + 1] = 'within' end
  return table.concat(words, ' ')
end

-- Returns the functions that take requests and decisions, by name.
local function make_sessions(batch, settings, claims)
  local bounds = make_session_bounds(batch, settings.session_bounds)
  batch.records = batch.records or make_session_records(batch.now)
  local records, sessions = batch.records, {}

  -- Adds the new session, and removes the one that gives way.
  local function enter(newcomer, at_target, place)
    if place then
      local out = table.remove(at_target.pending, place)
      -- The keys of two principals, and of two sessions, differ only at their end.
      local principal_prefix = string.sub(newcomer.principal_key, 1, -1 - #newcomer.principal)
      end_session(batch, out, principal_prefix, string.sub(newcomer.key, 1, -1 - #newcomer.name))
    end
    local words = { newcomer.name, batch.now_text, newcomer.ttl, newcomer.principal, newcomer.requester }
    local session = records.parse_pending(table.concat(words, ' '))
    at_target.pending[#at_target.pending + 1] = session
    batch.pending_changed[newcomer.pending_key] = true
    local ends_at = digits(session.expires_at)
    for _, key in ipairs({ newcomer.principal_key, newcomer.agent_key }) do
      redis.call('ZREMRANGEBYSCORE', key, '-inf', batch.now_text)
      redis.call('ZADD', key, ends_at, newcomer.name)
      redis.call('PEXPIREAT', key, ends_at, 'NX')
      redis.call('PEXPIREAT', key, ends_at, 'GT')
    end
    bounds.count_opened(newcomer)
    return ends_at
  end

  local function record_proof(newcomer, delivery, origin)
    local source = origin == 'gateway' and 'simple_session_api' or 'websocket_envelope'
    local is_within = newcomer.proofs_within_key ~= nil
    local proof = format_proof(newcomer.id, newcomer.from, newcomer.to, batch.now_text, delivery, source, is_within)
    -- Proofs within one principal have a list of their own, so that they do not push out others.
    local proofs_key = newcomer.proofs_within_key or settings.proofs_key
    redis.call('LPUSH', proofs_key, proof)
    redis.call('LTRIM', proofs_key, 0, settings.proofs_kept - 1)
    if delivery ~= 'online' then return end
    redis.call('HSET', settings.last_proof_key, 'proof', proof)
    local words = { batch.now_text, string.sub(origin, 1, 1), newcomer.requester, newcomer.name }
    if is_within then words[#words + 1] = 'within' end
    pending_of(batch, newcomer.pending_key).proof = table.concat(words, ' ')
  end

  -- Returns the session's state and when it was created. It is expired if its time is over, or it gave way.
  local function state_of(session)
    local record = redis.call('GET', session.key)
    if not record then return 'e', batch.now_text end
    local status, created_at = records.parse_session(record)
    if status == 'p' and not records.place_of(pending_of(batch, session.pending_key), session.name) then status = 'e' end
    return status, created_at
  end

  local function count_request(status, origin)
    count_if_not_reached(batch, status)
    if status == 'online' then count(batch, 'session_requests_to_online_target', 1) end
    if origin ~= 'gateway' then return end
    local reached = status == 'online' and 'online' or 'offline'
    count(batch, 'simple_session_request_accepted_to_' .. reached .. '_target', 1)
  end

  function sessions.take_request(bucket, digest, to, origin, text, id, number, pending_number, opened_number, principal_number,
    principal_opened_number, principal, from, ttl, held_elsewhere, opened_elsewhere, principal_opened_elsewhere,
    principal_holds_most, principal_opens_most, agent_number, agent_holds_elsewhere, agents_share,
    proofs_within_number, ...)
    local claim = claims.of(...)
    if claims.answer(claim) then return end
    local session = {
      id = id, name = records.name_of(id), from = from, to = to, ttl = ttl, principal = principal,
      requester = records.agent_name(from), principal_key = KEYS[tonumber(principal_number)],
      key = KEYS[tonumber(number)], pending_key = KEYS[tonumber(pending_number)], opened_key = KEYS[tonumber(opened_number)],
      principal_opened_key = KEYS[tonumber(principal_opened_number)],
      held_elsewhere = tonumber(held_elsewhere), opened_elsewhere = tonumber(opened_elsewhere),
      principal_opened_elsewhere = tonumber(principal_opened_elsewhere),
      principal_holds_most = tonumber(principal_holds_most), principal_opens_most = tonumber(principal_opens_most),
      agent_key = KEYS[tonumber(agent_number)], agent_holds_elsewhere = tonumber(agent_holds_elsewhere),
      agents_share = tonumber(agents_share), proofs_within_key = KEYS[tonumber(proofs_within_number)],
    }
    if redis.call('SISMEMBER', bucket, digest) == 1 then
      local result = { 'duplicate' }
      return settle(batch, target_of(batch, to), result, function() result[3], result[4] = state_of(session) end)
    end
    if batch.some_choose and is_unwanted(batch, to, from, principal) then
      return answer(batch, { 'not_accepted_by_target' })
    end
    if batch.is_short then return answer(batch, { 'over_capacity' }) end
    local at_target = pending_of(batch, session.pending_key)
    local place = bounds.place_that_gives_way(at_target.pending, session)
    local wait = bounds.wait_of(session, at_target.pending[place])
    if wait then return answer(batch, wait) end
    redis.call('SADD', bucket, digest)
    count_publications(batch, 1, origin, 'simple_session_request_accepted')
    count(batch, 'session_requests', 1)
    local ends_at = enter(session, at_target, place)
    settle(batch, deliver(batch, to, id, text), { 'accepted', '', 'p', batch.now_text }, function(status)
      local delivery = status == 'offline' and 'stale' or status
      local record = records.format_session(delivery, batch.now_text, ttl, from, to)
      -- A session that gave way within this batch has ended already.
      local ended_at = records.place_of(at_target, session.name) and ends_at or batch.now
      redis.call('SET', session.key, record, 'PXAT', digits(ended_at + batch.session_kept))
      record_proof(session, delivery, origin)
      if claim then claims.keep(claim, status, id) end
      count_request(status, origin)
    end)
  end

  -- The decision is in effect. The digest of its text in the guard says that it is not accepted yet. If the guard has
  -- not even its digest, Redis lost the guard.
  function sessions.take_decision(bucket, digest, to, origin, text, id, text_digest, decided_number, status, decided_at, from)
    local is_new = redis.call('SADD', bucket, digest) == 1 or redis.call('SREM', bucket, text_digest) == 1
    if not is_new then return settle(batch, target_of(batch, to), { 'duplicate' }) end
    count_publications(batch, 1, origin, 'simple_send_accepted')
    settle(batch, deliver(batch, to, id, text), { 'accepted' }, function(reached)
      count_if_not_reached(batch, reached)
      if reached == 'online' then return end
      local key = KEYS[tonumber(decided_number)]
      redis.call('ZADD', key, decided_at, records.format_decided(records.name_of(id), status, decided_at, from))
      redis.call('ZREMRANGEBYRANK', key, 0, -1 - bounds.most_decided)
      redis.call('PEXPIRE', key, bounds.decided_kept)
    end)
  end

  return sessions
end

-- Returns a function that takes one such item. Redis makes the functions of a script again at each call, so these are
-- made only when an item needs them: at the top of the file they would cost a plain message 3 % (1.3 µs). `settings`
-- has proofs_key, last_proof_key, proofs_kept, claim_kept and session_bounds.
local function make_take_publication(batch, settings)
  local claims, sessions = {}, nil

  -- Returns nil for an item without a claim.
  function claims.of(number, body, envelope_id)
    return number and { key = KEYS[tonumber(number)], body = body, envelope_id = envelope_id }
  end

  -- Returns whether the claim has answered for the envelope.
  function claims.answer(claim)
    local first = claim and redis.call('HMGET', claim.key, 'body', 'status', 'accepted_at', 'envelope_id', 'session_id')
    if not first or not first[1] then return false end
    answer(batch, first[1] == claim.body and { 'replayed', first[2], first[3], first[4], first[5] } or { 'reused' })
    return true
  end

  function claims.keep(claim, status, session_id)
    redis.call('HSET', claim.key, 'body', claim.body, 'status', status, 'accepted_at', batch.now_text,
      'envelope_id', claim.envelope_id, 'session_id', session_id)
    redis.call('PEXPIRE', claim.key, settings.claim_kept)
  end

  local function take_claimed_message(bucket, digest, agent, origin, text, ...)
    local claim = claims.of(...)
    if claims.answer(claim) then return end
    if batch.some_choose and is_unwanted(batch, agent, sender_of(text), '') then
      local is_known = redis.call('SISMEMBER', bucket, digest) == 1
      if not is_known then return answer(batch, { 'not_accepted_by_target' }) end
    end
    if batch.is_short then return answer(batch, { 'over_capacity' }) end
    if redis.call('SADD', bucket, digest) == 0 then return settle(batch, target_of(batch, agent), { 'duplicate' }) end
    count_publications(batch, 1, origin, 'simple_send_accepted')
    settle(batch, deliver(batch, agent, '-', text), { 'accepted' }, function(status)
      count_if_not_reached(batch, status)
      claims.keep(claim, status, '-')
    end)
  end

  return function(kind, ...)
    if kind == 'claimed_message' then return take_claimed_message(...) end
    sessions = sessions or make_sessions(batch, settings, claims)
    if kind == 'session_request' then sessions.take_request(...) else sessions.take_decision(...) end
  end
end
