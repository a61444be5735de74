-- Part of accept: registers and heartbeats.
-- Uses  lib/channel_line, lib/route, accept/accept_from, accept/agents, accept/asked, accept/clock, accept/counters, accept/credentials,
--       accept/leases, accept/pod_messages, accept/results, accept/targets

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
