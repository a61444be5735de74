-- Registers and heartbeats: who owns an agent, its epoch, its credentials, and whom it accepts envelopes from.
-- Uses  lib/accept_from, lib/credential_records, lib/principal_agents, lib/route, lib/time, accept/batch,
--       accept/delivery

-- Returns the next epoch. Epochs only rise, also from one window to the next: they are near the time in µs.
local function tick(batch)
  local value = digits(math.max((redis.call('GET', batch.clock_key) or 0) + 1, batch.microseconds))
  redis.call('SET', batch.clock_key, value)
  return value
end

-- Returns the newest line with another key than the given line, or nil.
local function newest_of_another_key(lines, newest)
  local key_id = string.match(newest, '^[^ ]+')
  for line in string.gmatch(lines, '[^\n]+') do
    if string.match(line, '^[^ ]+') ~= key_id then return line end
  end
end

-- Keeps the credential of a register, and the newest one with another key. A heartbeat brings none and renews the
-- record.
local function add_credential(batch, credential_key, last_end, newest)
  if not newest or batch.is_short then
    redis.call('PEXPIREAT', credential_key, credentials_end(batch, last_end))
    return
  end
  -- Most agents have only one credential: the record is read only if it existed.
  local kept = keep_credentials(batch, credential_key, last_end, newest, 'GET')
  local other = kept and newest_of_another_key(kept, newest)
  if other then keep_credentials(batch, credential_key, last_end, newest .. '\n' .. other) end
end

-- Returns the words that are kept (lib/accept_from), or '' for everyone.
local function accept_from_of(batch, agent)
  return batch.some_choose and words_of(redis.call('HGET', batch.accept_from_key, agent)) or ''
end

-- Ends the pending sessions that the agent does not accept. This runs each time the agent is told of them: a request
-- may have come while Redis had lost whom the agent accepts.
local function end_unwanted_sessions(batch, agent, pending_key, principal_prefix, session_prefix)
  local at_target, wanted = pending_of(batch, pending_key), {}
  for _, session in ipairs(at_target.pending) do
    if is_unwanted(batch, agent, batch.records.agent_id(session.requester), session.principal) then
      end_session(batch, session, principal_prefix, session_prefix)
    else wanted[#wanted + 1] = session end
  end
  if #wanted == #at_target.pending then return end
  at_target.pending = wanted
  batch.pending_changed[pending_key] = true
end

-- Asks the owner's pod whether the connection still has the agent. Returns whether the pod heard.
local function pod_answers(batch, owner, agent)
  local line = format_line('probe', owner.connection, owner.epoch, agent)
  return redis.call('SPUBLISH', batch.channel_prefix .. owner.pod, line) > 0
end

-- Returns what the agent must be told: its pending sessions, and decisions that were made while it was not online.
local function what_waits(batch, agent, pending_number, decided_number, ...)
  local pending_key = KEYS[tonumber(pending_number)]
  if batch.some_choose then end_unwanted_sessions(batch, agent, pending_key, ...) end
  local at_target = pending_of(batch, pending_key)
  return batch.records.lines_of(at_target), redis.call('ZRANGE', KEYS[tonumber(decided_number)], 0, -1)
end

-- Takes a register or heartbeat. Returns nothing: the result goes into the batch.
local function take_presence(
  batch, kind, bucket, digest, agent, pod, connection, mark, pending_number, decided_number, agents_number,
  most_agents, accept_from, principal_prefix, session_prefix, credential_number, ...)
  local agents_key = KEYS[tonumber(agents_number)]
  local owner, record = read_route(batch, agent)
  local owns = owner and owner.pod == pod and owner.connection == connection
  if redis.call('SISMEMBER', bucket, digest) == 1 then
    local target = target_of(batch, agent)
    local result = { 'duplicate', 'online', target.last_seen, '' }
    if owns then
      result[4], result[5], result[6] = owner.epoch, what_waits(batch, agent, pending_number, decided_number, principal_prefix, session_prefix)
    end
    if target.congested then return answer(batch, result) end
    return settle(batch, target, result)
  end
  if kind == 'heartbeat' and owner and not owns then
    if pod_answers(batch, owner, agent) then return answer(batch, { 'not_registered', owner.epoch }) end
    if not is_gone(batch, owner.pod) then return answer(batch, { 'unavailable' }) end
    owner = nil
  end
  if not record and not redis.call('ZSCORE', batch.presence_key, agent) then
    local refusal = refusal_of_newcomer(batch, agents_key, tonumber(most_agents))
    -- The guard does not have the envelope, so the agent may send it again.
    if refusal then return answer(batch, { refusal }) end
  end
  -- A register that changes nothing needs no new room.
  local needs_room = batch.is_short and kind == 'register' and accept_from ~= ''
  if needs_room and accept_from_of(batch, agent) ~= accept_from then return answer(batch, { 'over_capacity' }) end
  redis.call('SADD', bucket, digest)
  count(batch, 'websocket_accepted', 1)
  -- Each register has an epoch of its own, so a late release or mark of an older one does not change it. A heartbeat
  -- keeps the epoch of its connection: a superseded connection must not win by a heartbeat.
  local epoch = kind == 'heartbeat' and owns and owner.epoch or tick(batch)
  if owner and not owns then
    add_line(pod_message_to(batch, owner.pod), format_line('superseded', owner.connection, epoch, agent))
  end
  -- A new hold begins if another connection had the agent, or none, or if the owner was silent until the agent was
  -- stale.
  local since = owns and batch.now - owner.seen_at <= batch.stale_after and parse_since(record) or batch.now_text
  -- The route was restored (restore_routes) and the agent has not been heard since: it was not told what waits for it.
  local goes_on = owns and tonumber(since) <= tonumber(owner.seen_at)
  redis.call('HSET', batch.route_key, agent, format_route(pod, connection, epoch, batch.now_text, since, mark))
  redis.call('ZADD', batch.presence_key, batch.now_text, agent)
  redis.call('ZADD', batch.online_key, batch.now_text, agent)
  bring_agent(batch, agents_key, batch.now_text, agent)
  if credential_number then add_credential(batch, KEYS[tonumber(credential_number)], ...) end
  batch.targets[agent] = nil
  -- A heartbeat says whom its agent accepts only if Redis has lost the agent.
  local says = kind == 'register' or not owns and accept_from ~= '-'
  if says then keep_accept_from(batch, agent, epoch, accept_from) end
  if goes_on then
    if kind == 'register' and batch.some_choose then
      end_unwanted_sessions(batch, agent, KEYS[tonumber(pending_number)], principal_prefix, session_prefix)
    end
    return answer(batch, { 'accepted', 'online', batch.now_text, epoch })
  end
  local pending, decided = what_waits(batch, agent, pending_number, decided_number, principal_prefix, session_prefix)
  local learned = accept_from == '-' and accept_from_of(batch, agent) or nil
  answer(batch, { 'accepted', 'online', batch.now_text, epoch, pending, decided, learned })
end
