-- Part of accept: registers and heartbeats. Redis makes the functions of a script anew for each call, so those that few
-- calls need are made when one does.
local function make_take_presence()
  -- The owner's pod is asked whether it still knows the connection; a pod without subscriber has no connections.
  local function pod_answers(owner, agent)
    return call('SPUBLISH', channel_prefix .. owner.pod, words('probe', owner.connection, owner.epoch, agent)) > 0
  end

  local function supersede(owner, epoch, agent)
    table.insert(post_of(owner.pod).pieces, words(LINE_END .. 'superseded', owner.connection, epoch, agent))
  end

  return function(kind, bucket, digest, agent, pod, connection, pending_number)
    local pending_key = KEYS[tonumber(pending_number)]
    local owner = owner_of(agent)
    local owns = owner and owner.pod == pod and owner.connection == connection
    if call('SISMEMBER', bucket, digest) == 1 then
      local target = target_of(agent)
      local pending = owns and live_pending(pending_key) or {}
      return settle(target, { 'duplicate', '', target.last_seen, owns and owner.epoch or '', unpack(pending) })
    end
    if kind == 'heartbeat' and owner and not owns then
      if pod_answers(owner, agent) then return answer({ 'not_registered', owner.epoch }) end
      owner = nil
    end
    call('SADD', bucket, digest)
    count('websocket_accepted', 1)
    local epoch = owns and owner.epoch or tick()
    if owner and not owns then supersede(owner, epoch, agent) end
    call('HSET', route_key, agent, words(pod, connection, epoch, now_text))
    call('ZADD', presence_key, now_text, agent)
    call('ZADD', online_key, now_text, agent)
    targets[agent] = nil
    answer({ 'accepted', 'online', now_text, epoch, unpack(owns and {} or live_pending(pending_key)) })
  end
end
