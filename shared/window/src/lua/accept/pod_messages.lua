-- Part of accept: pod messages. A pod message is all that one pod gets of a batch, in one publish of one line or more.
-- Uses  lib/channel_line, lib/route, accept/leases, accept/targets

-- Returns the message to a pod: its pieces, which are joined when it is published, and the targets whose envelopes are in
-- it.
local function pod_message_to(batch, pod)
  local messages = batch.pod_messages
  local message = messages[pod]
  if not message then
    message = { pod = pod, pieces = {}, targets = {} }
    messages[pod], messages[#messages + 1] = message, message
  end
  return message
end

-- Adds a line; what is given as its rest stays a piece of its own.
local function add_line(message, line, rest)
  local pieces = message.pieces
  local n = #pieces
  if n > 0 then
    n = n + 1
    pieces[n] = '\n'
  end
  pieces[n + 1], pieces[n + 2] = line, rest
end

-- Adds an envelope to the message to its target's pod when the target is online. Returns the target.
local function deliver(batch, agent, session_id, text)
  local target = target_of(batch, agent)
  local route = target.route
  if not route then return target end
  if not target.pod_message then
    target.pod_message = pod_message_to(batch, route.pod)
    table.insert(target.pod_message.targets, target)
  end
  -- Consecutive envelopes of no session, or of one, have the same words before their texts.
  if target.session_id ~= session_id then
    target.session_id, target.head = session_id, format_delivery(route.connection, route.epoch, agent, session_id)
  end
  add_line(target.pod_message, target.head, text)
  return target
end

-- Publishes the pod messages. Where that reached nobody the targets are stale and not online any more; when the pod is gone,
-- their routes go. Those to which the batch gave newer routes keep them.
local function publish(batch)
  for _, message in ipairs(batch.pod_messages) do
    if redis.call('SPUBLISH', batch.channel_prefix .. message.pod, table.concat(message.pieces)) == 0 then
      local gone = is_gone(batch, message.pod)
      for _, target in ipairs(message.targets) do
        target.status = 'stale'
        local owner = format_owner(target.route.pod, target.route.connection, target.route.epoch)
        if gone then release_route(batch.route_key, batch.online_key, target.agent, owner)
        elseif is_owned(redis.call('HGET', batch.route_key, target.agent), owner) then
          redis.call('ZREM', batch.online_key, target.agent)
        end
      end
    end
  end
end
