-- Part of accept: messages with a claim or of a session, and session requests.
-- Uses  lib/time, lib/pending, lib/proof, accept/clock, accept/counters, accept/pod_messages, accept/results,
--       accept/targets

-- Returns a function that takes one such item. Its parts are made when an item needs them, since Redis makes the functions
-- of a script anew for each call: a call with one plain message would cost 3 % more (1.3 µs) if they stood alone. `settings`
-- has proofs_key, last_proof_key, max_pending, proofs_kept, session_kept and claim_kept by name.
local function make_take_publication(batch, settings)
  local function claim_of(number, body, envelope_id)
    return number and { key = KEYS[tonumber(number)], body = body, envelope_id = envelope_id }
  end

  -- True when the claim answers in the envelope's place.
  local function answered_by(claim)
    local first = claim and redis.call('HMGET', claim.key, 'body', 'status', 'accepted_at', 'envelope_id', 'session_id')
    if not first or not first[1] then return false end
    answer(batch, first[1] == claim.body and { 'replayed', first[2], first[3], first[4], first[5] } or { 'reused' })
    return true
  end

  local function keep_claim(claim, status, session_id)
    redis.call('HSET', claim.key, 'body', claim.body, 'status', status, 'accepted_at', batch.now_text,
      'envelope_id', claim.envelope_id, 'session_id', session_id)
    redis.call('PEXPIRE', claim.key, settings.claim_kept)
  end

  -- Returns the session's state and when it was created. One that gave way to newer ones, or whose time ran out, is expired.
  local function session_state(session)
    local status, requester, created_at, expires_at =
      unpack(redis.call('HMGET', session.key, 'status', 'requester', 'created_at', 'expires_at'))
    if status ~= 'pending' then return status or 'expired', created_at or batch.now_text end
    local member = format_pending(session.id, requester, created_at, expires_at)
    return is_pending(session.pending_key, member, batch.now) and 'pending' or 'expired', created_at
  end

  local function make_room(pending_key)
    local max_pending = tonumber(settings.max_pending)
    if redis.call('ZCARD', pending_key) < max_pending then return end
    local live = read_pending(pending_key, batch.now)
    if #live >= max_pending then redis.call('ZREM', pending_key, live[1]) end
  end

  local function open_session(session, delivery)
    local expires_at = digits(batch.now + session.ttl)
    redis.call('HSET', session.key, 'id', session.id, 'status', 'pending', 'requester', session.requester,
      'target', session.target, 'created_at', batch.now_text, 'expires_at', expires_at, 'delivery', delivery)
    redis.call('PEXPIREAT', session.key, digits(expires_at + settings.session_kept))
    make_room(session.pending_key)
    local member = format_pending(session.id, session.requester, batch.now_text, expires_at)
    redis.call('ZADD', session.pending_key, tick(batch), member)
    redis.call('PEXPIREAT', session.pending_key, expires_at, 'NX')
    redis.call('PEXPIREAT', session.pending_key, expires_at, 'GT')
  end

  local function record_proof(session, delivery, source)
    local proof = format_proof(session.id, session.requester, session.target, batch.now_text, delivery, source)
    redis.call('LPUSH', settings.proofs_key, proof)
    redis.call('LTRIM', settings.proofs_key, 0, settings.proofs_kept - 1)
    if delivery ~= 'online' then return end
    redis.call('HSET', settings.last_proof_key, 'proof', proof)
    redis.call('SET', session.proof_key, proof, 'PX', session.proof_fresh)
  end

  local function take_message(bucket, digest, agent, origin, text, session_id, ...)
    local claim = claim_of(...)
    if answered_by(claim) then return end
    if claim and batch.is_short then return answer(batch, { 'over_capacity' }) end
    if redis.call('SADD', bucket, digest) == 0 then return settle(batch, target_of(batch, agent), { 'duplicate' }) end
    count_publications(batch, 1, origin, 'simple_send_accepted')
    local target = deliver(batch, agent, session_id, text)
    settle(batch, target, { 'accepted' }, claim and function(status) keep_claim(claim, status, session_id) end)
  end

  local function take_session_request(
    bucket, digest, agent, origin, text, id, number, pending_number, proof_number, requester, ttl, proof_fresh, ...)
    local claim = claim_of(...)
    local session = { target = agent, id = id, requester = requester, ttl = ttl, proof_fresh = proof_fresh }
    session.key, session.pending_key = KEYS[tonumber(number)], KEYS[tonumber(pending_number)]
    session.proof_key = KEYS[tonumber(proof_number)]
    if answered_by(claim) then return end
    -- A session that was opened before is a repeat, and needs no room.
    if batch.is_short and not redis.call('HGET', session.key, 'id') then return answer(batch, { 'over_capacity' }) end
    if redis.call('SADD', bucket, digest) == 0 then
      local result = { 'duplicate' }
      return settle(batch, target_of(batch, agent), result, function() result[3], result[4] = session_state(session) end)
    end
    count_publications(batch, 1, origin, 'simple_session_request_accepted')
    count(batch, 'session_requests', 1)
    local target = deliver(batch, agent, id, text)
    settle(batch, target, { 'accepted', '', 'pending', batch.now_text }, function(status)
      local delivery = status == 'offline' and 'stale' or status
      open_session(session, delivery)
      record_proof(session, delivery, origin == 'gateway' and 'simple_session_api' or 'websocket_envelope')
      if claim then keep_claim(claim, status, id) end
      if status == 'online' then count(batch, 'session_requests_to_online_target', 1) end
      if origin == 'gateway' then
        local reached = status == 'online' and 'online' or 'offline'
        count(batch, 'simple_session_request_accepted_to_' .. reached .. '_target', 1)
      end
    end)
  end

  return function(kind, ...)
    if kind == 'message' then take_message(...) else take_session_request(...) end
  end
end
