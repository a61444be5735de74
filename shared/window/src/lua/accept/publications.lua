-- Part of accept: messages with a claim, session requests and session decisions.
-- Uses  accept/pod_messages, accept/published, accept/results, accept/sessions, accept/targets, accept/unwanted

-- Returns a function that takes one such item. Its parts are made when an item needs them, since Redis makes the functions
-- of a script anew for each call: a call with one plain message would cost 3 % more (1.3 µs) if they stood alone. `settings`
-- has proofs_key, last_proof_key, proofs_kept, claim_kept and session_bounds by name.
local function make_take_publication(batch, settings)
  local claims, sessions = {}, nil

  -- Returns nil for an item without one.
  function claims.of(number, body, envelope_id)
    return number and { key = KEYS[tonumber(number)], body = body, envelope_id = envelope_id }
  end

  -- True when the claim answers in the envelope's place.
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

  local function take_message(bucket, digest, agent, origin, text, ...)
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
    if kind == 'message' then return take_message(...) end
    sessions = sessions or make_sessions(batch, settings, claims)
    if kind == 'session_request' then sessions.take_request(...) else sessions.take_decision(...) end
  end
end
