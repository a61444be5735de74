-- The targets of a batch: where they are, whether they accept the envelope, one publish for each pod, and what is
-- counted of it.
-- Uses  lib/route

-- Returns whether a pod is gone that did not receive a publish. Its routes are then removed. With several partitions a
-- living pod may miss a publish, while a slot moves or a replica takes over. There it is gone only when its lease is
-- over and other pods have renewed theirs since (renew_lease).
local function is_gone(batch, pod)
  if not batch.leases then return true end
  local number, lease, gap = string.match(batch.leases, '^(%d+) (%d+) (%d+)$')
  local leases = { key = KEYS[tonumber(number)], lease = tonumber(lease), gap = tonumber(gap) }
  local newest = redis.call('ZRANGE', leases.key, -1, -1, 'WITHSCORES')[2]
  if not newest then return false end
  local renewed_at = redis.call('ZSCORE', leases.key, pod)
  return not renewed_at or batch.now - newest <= leases.gap and batch.now - renewed_at > leases.lease
end

-- Returns an agent's route by name (lib/route) and its record, or nil if no connection has the agent.
local function read_route(batch, agent)
  local record = redis.call('HGET', batch.route_key, agent)
  if not record then return nil end
  return parse_route(record), record
end

-- Returns {agent, status, last_seen, route, congested} of a target, read once a batch. last_seen is '' if it was not
-- seen. route is nil if it cannot receive now. An online agent with a congested connection is stale as a target. So is
-- one whose pod does not receive the publish.
local function target_of(batch, agent)
  local target = batch.targets[agent]
  if target then return target end
  local route = read_route(batch, agent)
  local last_seen = route and route.seen_at or redis.call('ZSCORE', batch.presence_key, agent) or ''
  local age = batch.now - (tonumber(last_seen) or -math.huge)
  target = { agent = agent, status = 'not_seen', last_seen = last_seen, route = nil, congested = false }
  if route and age <= batch.stale_after then
    if route.congested then target.congested, target.status = true, 'stale'
    else target.route, target.status = route, 'online' end
  elseif age <= batch.offline_after then target.status = 'stale'
  elseif age <= batch.forget_after then target.status = 'offline' end
  batch.targets[agent] = target
  return target
end

-- Returns the sender in an envelope's canonical text: its first members have a fixed order and no escapes. The dots
-- stand for colons, since a script must not spell a key.
local function sender_of(text)
  return string.match(text, '^{"id"."[^"]+","type"."[^"]+","from"."([^"]+)"')
end

-- Returns the words of a record (lib/accept_from), or '' without a record.
local function words_of(record)
  return record and string.match(record, '^%d+(.*)$') or ''
end

-- Returns whether the words name a sender.
local function is_named(words, from, principal)
  if string.find(words, ' ' .. from .. ' ', 1, true) then return true end
  if string.find(words, ' @' .. principal .. ' ', 1, true) then return true end
  for prefix in string.gmatch(words, ' (%S+%.)%*') do
    if string.sub(from, 1, #prefix) == prefix then return true end
  end
  return false
end

-- Returns whether the target does not accept the sender's envelopes. `principal` is the digest of the sender's issuer,
-- or any other text. An agent always accepts its own.
local function is_unwanted(batch, agent, from, principal)
  local target = target_of(batch, agent)
  if target.accept_from == nil then
    target.accept_from = redis.call('HGET', batch.accept_from_key, agent)
    target.unwanted = {}
  end
  if not target.accept_from or from == agent then return false end
  local sender = from .. ' ' .. principal
  if target.unwanted[sender] == nil then
    target.unwanted[sender] = not is_named(words_of(target.accept_from), from, principal)
  end
  return target.unwanted[sender]
end

-- A pod message is everything that one pod gets from a batch: one publish of one line or more.

-- Returns the message to a pod: its pieces, joined when it is published, and the targets of its envelopes.
local function pod_message_to(batch, pod)
  local messages = batch.pod_messages
  local message = messages[pod]
  if not message then
    message = { pod = pod, pieces = {}, targets = {} }
    messages[pod], messages[#messages + 1] = message, message
  end
  return message
end

-- Adds a line. `rest` stays a piece of its own.
local function add_line(message, line, rest)
  local pieces = message.pieces
  local n = #pieces
  if n > 0 then
    n = n + 1
    pieces[n] = '\n'
  end
  pieces[n + 1], pieces[n + 2] = line, rest
end

-- Adds an envelope to its target's pod message if the target is online. Returns the target.
local function deliver(batch, agent, session_id, text)
  local target = target_of(batch, agent)
  local route = target.route
  if not route then return target end
  if not target.pod_message then
    target.pod_message = pod_message_to(batch, route.pod)
    table.insert(target.pod_message.targets, target)
  end
  -- Envelopes in a row without session, or of one session, have the same words before their texts.
  if target.session_id ~= session_id then
    target.session_id, target.head = session_id, format_delivery(route.connection, route.epoch, agent, session_id)
  end
  add_line(target.pod_message, target.head, text)
  return target
end

-- Publishes the pod messages. If nobody received one, its targets become stale, and lose their routes if the pod is
-- gone. A newer route that this batch gave is kept.
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

-- Published envelopes are counted in fields `minute counter`, the counter of where they came in. A total is the sum of
-- the kept minutes and of the counters, which have the older ones. Envelopes to targets that were not online have a
-- further counter, so that the usual case costs no further command.

-- `gateway_counter` counts the same kind of envelope from the gateway.
local function count_publications(batch, n, origin, gateway_counter)
  local published, counter = batch.published, origin == 'websocket' and 'websocket_accepted' or gateway_counter
  published[counter] = (published[counter] or 0) + n
end

-- Call it with the status after the publish.
local function count_if_not_reached(batch, status)
  if status ~= 'online' then batch.not_reached = batch.not_reached + 1 end
end

-- Moves minutes up to `newest` into the counters.
local function fold_minutes(published_key, counters_key, newest)
  local kept = redis.call('HGETALL', published_key)
  for i = 1, #kept, 2 do
    local minute, counter = string.match(kept[i], '^(%d+) (.+)$')
    if tonumber(minute) <= newest then
      redis.call('HDEL', published_key, kept[i])
      redis.call('HINCRBY', counters_key, counter, kept[i + 1])
      redis.call('HINCRBY', counters_key, 'published_envelopes', kept[i + 1])
    end
  end
end

-- The first publication of a minute moves the old minutes.
local function write_published(batch, published_key, counters_key, minutes_kept)
  local minute = math.floor(batch.now / 60000)
  for counter, n in pairs(batch.published) do
    local is_first = redis.call('HINCRBY', published_key, minute .. ' ' .. counter, n) == n
    if is_first then fold_minutes(published_key, counters_key, minute - minutes_kept) end
  end
  if batch.not_reached > 0 then
    redis.call('HINCRBY', counters_key, 'published_to_offline_target', batch.not_reached)
  end
end
