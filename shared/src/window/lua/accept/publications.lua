-- Part of accept: messages with a claim or of a session, and session requests.
local function make_take_publication()
  local function claim_of(number, body, envelope_id)
    return number and { key = KEYS[tonumber(number)], body = body, envelope_id = envelope_id }
  end

  -- True when the claim answers in the envelope's place.
  local function answered_by(claim)
    local first = claim and call('HMGET', claim.key, 'body', 'status', 'accepted_at', 'envelope_id', 'session_id')
    if not first or not first[1] then return false end
    answer(first[1] == claim.body and { 'replayed', first[2], first[3], first[4], first[5] } or { 'reused' })
    return true
  end

  local function keep_claim(claim, status, session_id)
    call('HSET', claim.key, 'body', claim.body, 'status', status, 'accepted_at', now_text,
      'envelope_id', claim.envelope_id, 'session_id', session_id)
    call('PEXPIRE', claim.key, claim_kept)
  end

  -- A pending session stands in its target's set; one that gave way there, or whose time ran out, is expired.
  local function session_state(session)
    local status, requester, created_at, expires_at =
      unpack(call('HMGET', session.key, 'status', 'requester', 'created_at', 'expires_at'))
    if status ~= 'pending' then return status or 'expired', created_at or now_text end
    local member = words(session.id, requester, created_at, expires_at)
    local waits = tonumber(expires_at) > now and call('ZSCORE', session.pending_key, member)
    return waits and 'pending' or 'expired', created_at
  end

  local function make_room(pending_key)
    if call('ZCARD', pending_key) < max_pending then return end
    local live = live_pending(pending_key)
    if #live >= max_pending then call('ZREM', pending_key, live[1]) end
  end

  local function open_session(session, delivery)
    local expires_at = digits(now + session.ttl)
    call('HSET', session.key, 'id', session.id, 'status', 'pending', 'requester', session.requester,
      'target', session.target, 'created_at', now_text, 'expires_at', expires_at, 'delivery', delivery)
    call('PEXPIREAT', session.key, digits(now + session.ttl + session_kept))
    make_room(session.pending_key)
    call('ZADD', session.pending_key, tick(), words(session.id, session.requester, now_text, expires_at))
    call('PEXPIREAT', session.pending_key, expires_at, 'NX')
    call('PEXPIREAT', session.pending_key, expires_at, 'GT')
  end

  local function record_proof(session, delivery, source)
    local proof = words(session.id, session.requester, session.target, now_text, delivery, source)
    call('LPUSH', proofs_key, proof)
    call('LTRIM', proofs_key, 0, proofs_kept - 1)
    if delivery == 'online' then call('HSET', last_proof_key, 'proof', proof) end
  end

  local function take_message(bucket, digest, agent, origin, text, session_id, ...)
    local claim = claim_of(...)
    if answered_by(claim) then return end
    if call('SADD', bucket, digest) == 0 then return settle(target_of(agent), { 'duplicate' }) end
    count_publications(1, origin, 'simple_send_accepted')
    local target = deliver(agent, session_id .. ' ', text)
    settle(target, { 'accepted' }, claim and function(status) keep_claim(claim, status, session_id) end)
  end

  local function take_session_request(
    bucket, digest, agent, origin, text, id, number, pending_number, requester, ttl, ...)
    local claim = claim_of(...)
    local session = { target = agent, id = id, requester = requester, ttl = tonumber(ttl) }
    session.key, session.pending_key = KEYS[tonumber(number)], KEYS[tonumber(pending_number)]
    if answered_by(claim) then return end
    if call('SADD', bucket, digest) == 0 then
      local result = { 'duplicate' }
      return settle(target_of(agent), result, function() result[3], result[4] = session_state(session) end)
    end
    count_publications(1, origin, 'simple_session_request_accepted')
    count('session_requests', 1)
    settle(deliver(agent, session.id .. ' ', text), { 'accepted', '', 'pending', now_text }, function(status)
      local delivery = status == 'offline' and 'stale' or status
      open_session(session, delivery)
      record_proof(session, delivery, origin == 'gateway' and 'simple_session_api' or 'websocket_envelope')
      if claim then keep_claim(claim, status, session.id) end
      if origin == 'gateway' then
        count('simple_session_request_accepted_to_' .. (status == 'online' and 'online' or 'offline') .. '_target', 1)
      end
    end)
  end

  return function(kind, ...)
    if kind == 'message' then take_message(...) else take_session_request(...) end
  end
end
