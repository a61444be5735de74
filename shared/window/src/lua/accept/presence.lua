-- Part of accept: registers and heartbeats.
-- Uses  lib/channel_line, lib/pending, lib/route, accept/agents, accept/clock, accept/counters, accept/pod_messages,
--       accept/results, accept/targets

-- The owner's pod is asked whether the connection still has the agent. Returns whether anybody heard: a pod without subscriber
-- has no connections.
local function pod_answers(batch, owner, agent)
  local line = format_line('probe', owner.connection, owner.epoch, agent)
  return redis.call('SPUBLISH', batch.channel_prefix .. owner.pod, line) > 0
end

-- Returns when the hold that this envelope goes on with began: now when another connection has the agent so far, or none, or
-- when the owner was silent for so long that the agent was stale.
local function held_since(batch, owner, record, owns)
  local unbroken = owns and batch.now - owner.seen_at <= batch.stale_after
  return unbroken and parse_since(record) or batch.now_text
end

-- Returns nothing: the result stands in the batch.
local function take_presence(batch, kind, bucket, digest, agent, pod, connection, pending_number, agents_number)
  local pending_key, agents_key = KEYS[tonumber(pending_number)], agents_number and KEYS[tonumber(agents_number)]
  local owner, record = read_route(batch, agent)
  local owns = owner and owner.pod == pod and owner.connection == connection
  if redis.call('SISMEMBER', bucket, digest) == 1 then
    local target = target_of(batch, agent)
    local pending = owns and read_pending(pending_key, batch.now) or {}
    return settle(batch, target, { 'duplicate', '', target.last_seen, owns and owner.epoch or '', unpack(pending) })
  end
  if kind == 'heartbeat' and owner and not owns then
    if pod_answers(batch, owner, agent) then return answer(batch, { 'not_registered', owner.epoch }) end
    owner = nil
  end
  if not record and not redis.call('ZSCORE', batch.presence_key, agent) then
    local refusal = refusal_of_newcomer(batch, agents_key)
    -- The guard does not know the envelope: it may come again.
    if refusal then return answer(batch, { refusal }) end
  end
  redis.call('SADD', bucket, digest)
  count(batch, 'websocket_accepted', 1)
  local epoch = owns and owner.epoch or tick(batch)
  if owner and not owns then
    add_line(pod_message_to(batch, owner.pod), format_line('superseded', owner.connection, epoch, agent))
  end
  local since = held_since(batch, owner, record, owns)
  redis.call('HSET', batch.route_key, agent, format_route(pod, connection, epoch, batch.now_text, since))
  redis.call('ZADD', batch.presence_key, batch.now_text, agent)
  redis.call('ZADD', batch.online_key, batch.now_text, agent)
  if agents_key then
    redis.call('ZADD', agents_key, batch.now_text, agent)
    batch.forget_at[agents_key] = batch.now + batch.forget_after
  end
  batch.targets[agent] = nil
  local pending = owns and {} or read_pending(pending_key, batch.now)
  answer(batch, { 'accepted', 'online', batch.now_text, epoch, unpack(pending) })
end
