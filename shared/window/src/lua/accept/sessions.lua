-- Part of accept: session requests and decisions, and what bounds them.
-- Uses  lib/proof, lib/session_records, lib/time, accept/asked, accept/counters, accept/pod_messages, accept/results,
--       accept/targets

-- Returns functions that take such items, by name.
local function make_sessions(batch, settings, claims)
  local bounds = {}
  for bound in string.gmatch(settings.session_bounds, '%d+') do bounds[#bounds + 1] = tonumber(bound) end
  local most_pending, most_of_requester, most_of_principal, most_opened = unpack(bounds, 1, 4)
  local opened_window, most_decided, decided_kept, proof_fresh = unpack(bounds, 5, 8)
  batch.records = batch.records or make_session_records(batch.now)
  local records, changed, sessions = batch.records, {}, {}

  -- Returns the place of the pending session that gives way to a newcomer, or nil: the requester's own oldest beyond its
  -- share; at a full target the oldest of the principal with the most there, the newcomer's own unless another has more.
  local function place_that_gives_way(pending, newcomer)
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

  -- Returns why the newcomer has to wait, or nil, and writes nothing. What is elsewhere was counted before, in the others.
  local function wait_of(newcomer, gives_way)
    local opened = (redis.call('GET', newcomer.opened_key) or 0) + newcomer.opened_elsewhere
    if opened >= most_opened then
      local left = redis.call('PTTL', newcomer.opened_key)
      return { 'rate_limited', 'opened_sessions', left > 0 and left or opened_window }
    end
    local held = redis.call('ZCOUNT', newcomer.principal_key, '(' .. batch.now_text, '+inf') + newcomer.held_elsewhere
    if gives_way and gives_way.principal == newcomer.principal then held = held - 1 end
    if held >= most_of_principal then return { 'rate_limited', 'pending_sessions', opened_window } end
  end

  -- Takes the newcomer in, and out what gives way to it.
  local function enter(newcomer, asked, place)
    if place then
      local out = table.remove(asked.pending, place)
      -- Keys of principals and of sessions differ at their end. What gives way ends now: kept until its expiry it would fill Redis.
      local prefix = string.sub(newcomer.principal_key, 1, -1 - #newcomer.principal)
      redis.call('ZREM', prefix .. out.principal, out.name)
      redis.call('PEXPIRE', string.sub(newcomer.key, 1, -1 - #newcomer.name) .. out.name, settings.session_kept)
    end
    local words = { newcomer.name, batch.now_text, newcomer.ttl, newcomer.principal, newcomer.requester }
    local session = records.parse_pending(table.concat(words, ' '))
    asked.pending[#asked.pending + 1] = session
    changed[newcomer.asked_key] = true
    local ends_at = digits(session.expires_at)
    redis.call('ZREMRANGEBYSCORE', newcomer.principal_key, '-inf', batch.now_text)
    redis.call('ZADD', newcomer.principal_key, ends_at, newcomer.name)
    redis.call('PEXPIREAT', newcomer.principal_key, ends_at, 'NX')
    redis.call('PEXPIREAT', newcomer.principal_key, ends_at, 'GT')
    local opened = redis.call('INCRBY', newcomer.opened_key, 1)
    if opened == 1 then redis.call('PEXPIRE', newcomer.opened_key, opened_window) end
    return ends_at
  end

  local function record_proof(newcomer, delivery, origin)
    local source = origin == 'gateway' and 'simple_session_api' or 'websocket_envelope'
    local proof = format_proof(newcomer.id, newcomer.from, newcomer.to, batch.now_text, delivery, source)
    redis.call('LPUSH', settings.proofs_key, proof)
    redis.call('LTRIM', settings.proofs_key, 0, settings.proofs_kept - 1)
    if delivery ~= 'online' then return end
    redis.call('HSET', settings.last_proof_key, 'proof', proof)
    local words = { batch.now_text, string.sub(origin, 1, 1), newcomer.requester, newcomer.name }
    asked_of(batch, newcomer.asked_key).proof = table.concat(words, ' ')
  end

  -- Returns the session's state, and when it was created. One that gave way to newer ones, or whose time ran out, is expired.
  local function state_of(session)
    local record = redis.call('GET', session.key)
    if not record then return 'e', batch.now_text end
    local status, created_at = records.parse_session(record)
    if status == 'p' and not records.place_of(asked_of(batch, session.asked_key), session.name) then status = 'e' end
    return status, created_at
  end

  local function count_request(status, origin)
    if status == 'online' then count(batch, 'session_requests_to_online_target', 1) end
    if origin ~= 'gateway' then return end
    local reached = status == 'online' and 'online' or 'offline'
    count(batch, 'simple_session_request_accepted_to_' .. reached .. '_target', 1)
  end

  function sessions.take_request(bucket, digest, to, origin, text, id, number, asked_number, opened_number, principal_number,
    principal, from, ttl, held_elsewhere, opened_elsewhere, ...)
    local claim = claims.of(...)
    if claims.answer(claim) then return end
    local session = {
      id = id, name = records.name_of(id), from = from, to = to, ttl = ttl, principal = principal,
      requester = records.agent_name(from), principal_key = KEYS[tonumber(principal_number)],
      key = KEYS[tonumber(number)], asked_key = KEYS[tonumber(asked_number)], opened_key = KEYS[tonumber(opened_number)],
      held_elsewhere = tonumber(held_elsewhere), opened_elsewhere = tonumber(opened_elsewhere),
    }
    if redis.call('SISMEMBER', bucket, digest) == 1 then
      local result = { 'duplicate' }
      return settle(batch, target_of(batch, to), result, function() result[3], result[4] = state_of(session) end)
    end
    if batch.is_short then return answer(batch, { 'over_capacity' }) end
    local asked = asked_of(batch, session.asked_key)
    local place = place_that_gives_way(asked.pending, session)
    local wait = wait_of(session, asked.pending[place])
    if wait then return answer(batch, wait) end
    redis.call('SADD', bucket, digest)
    count_publications(batch, 1, origin, 'simple_session_request_accepted')
    count(batch, 'session_requests', 1)
    local ends_at = enter(session, asked, place)
    settle(batch, deliver(batch, to, id, text), { 'accepted', '', 'p', batch.now_text }, function(status)
      local delivery = status == 'offline' and 'stale' or status
      local record = records.format_session(delivery, batch.now_text, ttl, from, to)
      redis.call('SET', session.key, record, 'PXAT', digits(ends_at + settings.session_kept))
      record_proof(session, delivery, origin)
      if claim then claims.keep(claim, status, id) end
      count_request(status, origin)
    end)
  end

  -- The decision is in effect; its mark in the guard says that it is not accepted yet. Without its digest the guard was lost.
  function sessions.take_decision(bucket, digest, to, origin, text, id, mark, decided_number, status, decided_at, from)
    local is_new = redis.call('SADD', bucket, digest) == 1 or redis.call('SREM', bucket, mark) == 1
    if not is_new then return settle(batch, target_of(batch, to), { 'duplicate' }) end
    count_publications(batch, 1, origin, 'simple_send_accepted')
    settle(batch, deliver(batch, to, id, text), { 'accepted' }, function(reached)
      if reached == 'online' then return end
      local key = KEYS[tonumber(decided_number)]
      redis.call('ZADD', key, decided_at, records.format_decided(records.name_of(id), status, decided_at, from))
      redis.call('ZREMRANGEBYRANK', key, 0, -1 - most_decided)
      redis.call('PEXPIRE', key, decided_kept)
    end)
  end

  function batch.write_asked()
    for key in pairs(changed) do
      local record, ends_at = records.format_asked(batch.asked[key], proof_fresh)
      redis.call('SET', key, record, 'PXAT', ends_at)
    end
  end

  return sessions
end
