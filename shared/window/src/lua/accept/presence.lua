-- Part of accept: the partition's clock.
-- Uses  lib/principal_agents, lib/route, lib/time, accept/batch, accept/delivery

-- Returns a value that only ever rises, near the time of day in µs, which no burst outruns: so epochs stay in order over
-- windows.
local function tick(batch)
  local value = digits(math.max((redis.call('GET', batch.clock_key) or 0) + 1, batch.microseconds))
  redis.call('SET', batch.clock_key, value)
  return value
end

-- The credentials that an agent registered with: a line `key_id token` each, the newest first.

-- Returns the newest of the lines that is of another key than a line that is none of them, or nil.
local function newest_of_another_key(lines, newest)
  local key_id = string.match(newest, '^[^ ]+')
  for line in string.gmatch(lines, '[^\n]+') do
    if string.match(line, '^[^ ]+') ~= key_id then return line end
  end
end

-- Part of accept: the credentials that an agent registered with, for those who look it up. They are written with the route,
-- so that what is kept is what the agent's owner registered with.

-- Keeps the credential of a register, and the newest one of another key. A heartbeat has none, and keeps those that are there.
-- They are forgotten with the presence of their agent, or at `last_end`, when the last of them ends.
local function keep_credential(batch, credential_key, last_end, newest)
  local forget_at = digits(math.min(batch.now + batch.forget_after, tonumber(last_end)))
  if not newest or batch.is_short then
    redis.call('PEXPIREAT', credential_key, forget_at)
    return
  end
  -- Nearly every agent registers with its first one: nothing is kept that would have to be read before.
  local kept = redis.call('SET', credential_key, newest, 'GET', 'PXAT', forget_at)
  local other = kept and newest_of_another_key(kept, newest)
  if other then redis.call('SET', credential_key, newest .. '\n' .. other, 'PXAT', forget_at) end
end

-- Part of accept: whom agents accept envelopes from, as their registers say.

-- Returns the words that are kept (lib/accept_from), or '' for everyone.
local function accept_from_of(batch, agent)
  return batch.some_choose and words_of(redis.call('HGET', batch.accept_from_key, agent)) or ''
end

-- Keeps it in place of what was said before; '' is everyone.
local function keep_accept_from(batch, agent, epoch, words)
  if words ~= '' then
    redis.call('HSET', batch.accept_from_key, agent, epoch .. words)
    redis.call('HSET', batch.window_key, 'accept_from', 1)
    batch.some_choose = true
  elseif batch.some_choose then redis.call('HDEL', batch.accept_from_key, agent) end
  batch.targets[agent] = nil
end

-- Ends the pending sessions that others requested. Those that pend are looked at again whenever they are told: one may have been
-- requested while Redis, having lost it, did not know whom the agent accepts.
local function end_unwanted_sessions(batch, agent, asked_key, principal_prefix, session_prefix)
  local asked, wanted = asked_of(batch, asked_key), {}
  for _, session in ipairs(asked.pending) do
    if is_unwanted(batch, agent, batch.records.agent_id(session.requester), session.principal) then
      end_session(batch, session, principal_prefix, session_prefix)
    else wanted[#wanted + 1] = session end
  end
  if #wanted == #asked.pending then return end
  asked.pending = wanted
  batch.asked_changed[asked_key] = true
end

-- Part of accept: registers and heartbeats.

-- The owner's pod is asked whether the connection still has the agent. Returns whether anybody heard.
local function pod_answers(batch, owner, agent)
  local line = format_line('probe', owner.connection, owner.epoch, agent)
  return redis.call('SPUBLISH', batch.channel_prefix .. owner.pod, line) > 0
end

-- Returns what waits for an agent: its pending sessions, and the decisions that it was not online for.
local function what_waits(batch, agent, asked_number, decided_number, ...)
  local asked_key = KEYS[tonumber(asked_number)]
  if batch.some_choose then end_unwanted_sessions(batch, agent, asked_key, ...) end
  local asked = asked_of(batch, asked_key)
  return batch.records.lines_of(asked), redis.call('ZRANGE', KEYS[tonumber(decided_number)], 0, -1)
end

-- Returns nothing: the result stands in the batch.
local function take_presence(
  batch, kind, bucket, digest, agent, pod, connection, mark, asked_number, decided_number, agents_number,
  most_agents, accept_from, principal_prefix, session_prefix, credential_number, ...)
  local agents_key = KEYS[tonumber(agents_number)]
  local owner, record = read_route(batch, agent)
  local owns = owner and owner.pod == pod and owner.connection == connection
  if redis.call('SISMEMBER', bucket, digest) == 1 then
    local target = target_of(batch, agent)
    local result = { 'duplicate', 'online', target.last_seen, '' }
    if owns then
      result[4], result[5], result[6] = owner.epoch, what_waits(batch, agent, asked_number, decided_number, principal_prefix, session_prefix)
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
    -- The guard does not know the envelope: it may come again.
    if refusal then return answer(batch, { refusal }) end
  end
  -- It takes room that presence does not: a register that says what the one before said needs none.
  local needs_room = batch.is_short and kind == 'register' and accept_from ~= ''
  if needs_room and accept_from_of(batch, agent) ~= accept_from then return answer(batch, { 'over_capacity' }) end
  redis.call('SADD', bucket, digest)
  count(batch, 'websocket_accepted', 1)
  -- What is late of an older register, a release or a mark, never touches what a register gives: that has an epoch of its own. A heartbeat
  -- keeps the one of its connection, which may be superseded and not know: it never becomes the newer one by it.
  local epoch = kind == 'heartbeat' and owns and owner.epoch or tick(batch)
  if owner and not owns then
    add_line(pod_message_to(batch, owner.pod), format_line('superseded', owner.connection, epoch, agent))
  end
  -- A new hold begins when another connection has the agent so far, or none, or when the owner was silent for so long that
  -- the agent was stale.
  local since = owns and batch.now - owner.seen_at <= batch.stale_after and parse_since(record) or batch.now_text
  -- A route that was entered again (assert_routes) and not heard of since: what waits was not told yet.
  local goes_on = owns and tonumber(since) <= tonumber(owner.seen_at)
  redis.call('HSET', batch.route_key, agent, format_route(pod, connection, epoch, batch.now_text, since, mark))
  redis.call('ZADD', batch.presence_key, batch.now_text, agent)
  redis.call('ZADD', batch.online_key, batch.now_text, agent)
  bring_agent(batch, agents_key, batch.now_text, agent)
  if credential_number then keep_credential(batch, KEYS[tonumber(credential_number)], ...) end
  batch.targets[agent] = nil
  -- A heartbeat changes nothing of whom its agent accepts but where Redis has lost the agent, and what was said with it.
  local says = kind == 'register' or not owns and accept_from ~= '-'
  if says then keep_accept_from(batch, agent, epoch, accept_from) end
  if goes_on then
    if kind == 'register' and batch.some_choose then
      end_unwanted_sessions(batch, agent, KEYS[tonumber(asked_number)], principal_prefix, session_prefix)
    end
    return answer(batch, { 'accepted', 'online', batch.now_text, epoch })
  end
  local pending, decided = what_waits(batch, agent, asked_number, decided_number, principal_prefix, session_prefix)
  local learned = accept_from == '-' and accept_from_of(batch, agent) or nil
  answer(batch, { 'accepted', 'online', batch.now_text, epoch, pending, decided, learned })
end
