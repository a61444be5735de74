-- Part of accept: session requests and decisions.
-- Uses  lib/proof, lib/session_records, lib/time, accept/asked, accept/counters, accept/pod_messages,
--       accept/published, accept/results, accept/session_bounds, accept/targets, accept/unwanted

-- Returns functions that take such items, by name.
local function make_sessions(batch, settings, claims)
  local bounds = make_session_bounds(batch, settings.session_bounds)
  batch.records = batch.records or make_session_records(batch.now)
  local records, sessions = batch.records, {}

  -- Takes the newcomer in, and out what gives way to it.
  local function enter(newcomer, asked, place)
    if place then
      local out = table.remove(asked.pending, place)
      -- Keys of principals and of sessions differ at their end.
      local principal_prefix = string.sub(newcomer.principal_key, 1, -1 - #newcomer.principal)
      end_session(batch, out, principal_prefix, string.sub(newcomer.key, 1, -1 - #newcomer.name))
    end
    local words = { newcomer.name, batch.now_text, newcomer.ttl, newcomer.principal, newcomer.requester }
    local session = records.parse_pending(table.concat(words, ' '))
    asked.pending[#asked.pending + 1] = session
    batch.asked_changed[newcomer.asked_key] = true
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
    -- Those within one principal are kept apart, so that they push out no other.
    local proofs_key = newcomer.proofs_within_key or settings.proofs_key
    redis.call('LPUSH', proofs_key, proof)
    redis.call('LTRIM', proofs_key, 0, settings.proofs_kept - 1)
    if delivery ~= 'online' then return end
    redis.call('HSET', settings.last_proof_key, 'proof', proof)
    local words = { batch.now_text, string.sub(origin, 1, 1), newcomer.requester, newcomer.name }
    if is_within then words[#words + 1] = 'within' end
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
    count_if_not_reached(batch, status)
    if status == 'online' then count(batch, 'session_requests_to_online_target', 1) end
    if origin ~= 'gateway' then return end
    local reached = status == 'online' and 'online' or 'offline'
    count(batch, 'simple_session_request_accepted_to_' .. reached .. '_target', 1)
  end

  function sessions.take_request(bucket, digest, to, origin, text, id, number, asked_number, opened_number, principal_number,
    principal_opened_number, principal, from, ttl, held_elsewhere, opened_elsewhere, principal_opened_elsewhere,
    principal_holds_most, principal_opens_most, agent_number, agent_holds_elsewhere, agents_share,
    proofs_within_number, ...)
    local claim = claims.of(...)
    if claims.answer(claim) then return end
    local session = {
      id = id, name = records.name_of(id), from = from, to = to, ttl = ttl, principal = principal,
      requester = records.agent_name(from), principal_key = KEYS[tonumber(principal_number)],
      key = KEYS[tonumber(number)], asked_key = KEYS[tonumber(asked_number)], opened_key = KEYS[tonumber(opened_number)],
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
    local asked = asked_of(batch, session.asked_key)
    local place = bounds.place_that_gives_way(asked.pending, session)
    local wait = bounds.wait_of(session, asked.pending[place])
    if wait then return answer(batch, wait) end
    redis.call('SADD', bucket, digest)
    count_publications(batch, 1, origin, 'simple_session_request_accepted')
    count(batch, 'session_requests', 1)
    local ends_at = enter(session, asked, place)
    settle(batch, deliver(batch, to, id, text), { 'accepted', '', 'p', batch.now_text }, function(status)
      local delivery = status == 'offline' and 'stale' or status
      local record = records.format_session(delivery, batch.now_text, ttl, from, to)
      -- One that gave way within the batch has ended, and had no key then whose expiry could be set.
      local ended_at = records.place_of(asked, session.name) and ends_at or batch.now
      redis.call('SET', session.key, record, 'PXAT', digits(ended_at + batch.session_kept))
      record_proof(session, delivery, origin)
      if claim then claims.keep(claim, status, id) end
      count_request(status, origin)
    end)
  end

  -- The decision is in effect; the digest of its text in the guard says that it is not accepted yet. Without its digest the guard was lost.
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
