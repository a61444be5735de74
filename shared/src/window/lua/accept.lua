-- Accepts a batch of verified envelopes for one partition, in order, in one atomic step: window, replay guard,
-- presence and routes first; then one publish a pod; only then statuses, proofs and sessions, since a publish that
-- reached nobody means that the pod is gone and its targets are stale.
--
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 clock, 6 counters, 7 proofs, 8 last online proof,
--       9 minutes, 10… those that the items name by their number (guard buckets, sessions, pending sets, claims).
--       The channel of a pod, read from the route, is the one name not passed in.
-- ARGV  1 window id, 2 channel prefix, 3 stale after ms, 4 offline after ms, 5 forget after ms, 6 guard margin ms
--       (skew and the tolerance between pods), 7 most pending sessions a target, 8 proofs kept, 9 ms a session is kept
--       after its end, 10 ms an idempotency claim is kept, 11 minutes kept; then the items, each
--         how many arguments follow, kind, minute of ts, guard key, digest, agent, and by kind
--         register, heartbeat:  pod, connection, pending key
--         message:              origin, text, session id (of a decision, or -), claim
--         session_request:      origin, text, session id, session key, pending key, requester, ttl ms, claim
--       origin: websocket or gateway; claim: nothing, or key, body digest and envelope id; no two items have one key.
-- Returns {'window'} when the window is another one or none (nothing was done), or {'ok', now, result…}, each result
--   {'clock_skew'}                                                  ts is beyond what the guard can hold
--   {'not_registered', epoch}                                       the agent has another, live connection
--   {'accepted'|'duplicate', status, last seen, epoch, pending…}    register, heartbeat; no epoch ('') to others
--   {'accepted'|'duplicate', status}                                message
--   {'accepted'|'duplicate', status, session status, accepted at}   session_request
--   {'replayed', status, accepted at, envelope id, session id}      the claim's first answer
--   {'reused'}                                                      the claim belongs to another body
--   status: online, stale, offline or not_seen; session status: pending, approved, rejected or expired.
local window_key, presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock_key, counters_key, proofs_key, last_proof_key, minutes_key = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local window_id, channel_prefix = ARGV[1], ARGV[2]
local stale_after, offline_after, forget_after = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local guard_margin, max_pending, proofs_kept = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local session_kept, claim_kept, minutes_kept = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local call = redis.call
if call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local function digits(number)
  return string.format('%.0f', number)
end

local function words(...)
  return table.concat({ ... }, ' ')
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = digits(now)

local results = { 'ok', now_text }
local counts, forget_at, targets, posts, pods = {}, {}, {}, {}, {}
local cursor = 12

local function count(name)
  counts[name] = (counts[name] or 0) + 1
end

local function answer(result)
  results[#results + 1] = result
end

-- The target's status is known after the publish: it is then put second in the result, and `finish` gets it. Both are
-- kept under names in the result, of which the reply takes only what is numbered.
local function settle(target, result, finish)
  result.target, result.finish = target, finish
  answer(result)
end

-- A value that only ever rises, near the time of day in µs, which no burst outruns: epochs stay in order over windows.
local function tick()
  local value = digits(math.max((call('GET', clock_key) or 0) + 1, time[1] * 1000000 + time[2]))
  call('SET', clock_key, value)
  return value
end

-- A bucket holds every envelope of its minute for as long as such a ts could pass; a ts outside cannot be guarded.
local function guardable(minute, bucket)
  forget_at[bucket] = (minute + 1) * 60000 + guard_margin
  return now < forget_at[bucket] and minute * 60000 <= now + guard_margin
end

local function owner_of(agent)
  local route = call('HGET', route_key, agent)
  if not route then return nil end
  local pod, connection, epoch = string.match(route, '^(%S+) (%S+) (%S+)$')
  return { route = route, pod = pod, connection = connection, epoch = epoch }
end

local function target_of(agent)
  if targets[agent] then return targets[agent] end
  local target = { agent = agent, status = 'not_seen' }
  local connected_at = call('ZSCORE', online_key, agent)
  target.last_seen = connected_at or call('ZSCORE', presence_key, agent) or ''
  local age = now - (tonumber(target.last_seen) or -math.huge)
  if connected_at and age <= stale_after then target.owner = owner_of(agent) end
  if target.owner then target.status = 'online'
  elseif age <= offline_after then target.status = 'stale'
  elseif age <= forget_after then target.status = 'offline' end
  targets[agent] = target
  return target
end

-- Lua hashes every string that it makes, all of it: a text is put into a message once, when its pieces are joined.
local function post_to(pod, head, session_id, text)
  if not posts[pod] then
    posts[pod] = { pieces = {}, targets = {} }
    pods[#pods + 1] = pod
  end
  local pieces = posts[pod].pieces
  if #pieces > 0 then pieces[#pieces + 1] = '\n' end
  pieces[#pieces + 1] = head
  if not text then return end
  local n = #pieces
  pieces[n + 1], pieces[n + 2], pieces[n + 3] = session_id, ' ', text
end

local function deliver(agent, session_id, text)
  local target = target_of(agent)
  local owner = target.owner
  if owner then
    owner.head = owner.head or words('deliver', owner.connection, owner.epoch, agent, '')
    post_to(owner.pod, owner.head, session_id, text)
    posts[owner.pod].targets[target] = true
  end
  return target
end

local function live_pending(pending_key)
  local live = {}
  for _, member in ipairs(call('ZRANGE', pending_key, 0, -1)) do
    local expires_at = tonumber(string.match(member, '(%d+)$'))
    if expires_at > now then live[#live + 1] = member else call('ZREM', pending_key, member) end
  end
  return live
end

-- The owner's pod is asked whether it still knows the connection; a pod without subscriber has no connections.
local function pod_answers(owner, agent)
  return call('SPUBLISH', channel_prefix .. owner.pod, words('probe', owner.connection, owner.epoch, agent)) > 0
end

local function take_over(agent, pod, connection, former)
  local epoch = tick()
  call('HSET', route_key, agent, words(pod, connection, epoch))
  if former then post_to(former.pod, words('superseded', former.connection, epoch, agent)) end
  return epoch
end

local function presence_item(kind, bucket, digest, agent, pod, connection, pending_number)
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
  count('websocket_accepted')
  local epoch = owns and owner.epoch or take_over(agent, pod, connection, owner)
  call('ZADD', presence_key, now_text, agent)
  call('ZADD', online_key, now_text, agent)
  targets[agent] = nil
  answer({ 'accepted', 'online', now_text, epoch, unpack(owns and {} or live_pending(pending_key)) })
end

local function count_publication(origin, gateway_counter)
  count('published_envelopes')
  count(origin == 'websocket' and 'websocket_accepted' or gateway_counter)
end

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

local function message_item(bucket, digest, agent, origin, text, session_id, ...)
  local claim = claim_of(...)
  if answered_by(claim) then return end
  if call('SADD', bucket, digest) == 0 then return settle(target_of(agent), { 'duplicate' }) end
  count_publication(origin, 'simple_send_accepted')
  local target = deliver(agent, session_id, text)
  settle(target, { 'accepted' }, claim and function(status) keep_claim(claim, status, session_id) end)
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

local function session_request_item(
  bucket, digest, agent, origin, text, id, number, pending_number, requester, ttl, ...)
  local claim = claim_of(...)
  local session = { target = agent, id = id, requester = requester, ttl = tonumber(ttl) }
  session.key, session.pending_key = KEYS[tonumber(number)], KEYS[tonumber(pending_number)]
  if answered_by(claim) then return end
  if call('SADD', bucket, digest) == 0 then
    local result = { 'duplicate' }
    return settle(target_of(agent), result, function() result[3], result[4] = session_state(session) end)
  end
  count_publication(origin, 'simple_session_request_accepted')
  count('session_requests')
  settle(deliver(agent, session.id, text), { 'accepted', '', 'pending', now_text }, function(status)
    local delivery = status == 'offline' and 'stale' or status
    open_session(session, delivery)
    record_proof(session, delivery, origin == 'gateway' and 'simple_session_api' or 'websocket_envelope')
    if claim then keep_claim(claim, status, session.id) end
    if origin == 'gateway' then
      count('simple_session_request_accepted_to_' .. (status == 'online' and 'online' or 'offline') .. '_target')
    end
  end)
end

while cursor <= #ARGV do
  local last = cursor + ARGV[cursor]
  local kind, minute, bucket = ARGV[cursor + 1], tonumber(ARGV[cursor + 2]), KEYS[tonumber(ARGV[cursor + 3])]
  if not guardable(minute, bucket) then answer({ 'clock_skew' })
  elseif kind == 'message' then message_item(bucket, unpack(ARGV, cursor + 4, last))
  elseif kind == 'session_request' then session_request_item(bucket, unpack(ARGV, cursor + 4, last))
  else presence_item(kind, bucket, unpack(ARGV, cursor + 4, last)) end
  cursor = last + 1
end

-- An agent of a pod that is gone: its route goes, unless the batch gave it a newer one.
local function release(target)
  target.status = 'stale'
  if call('HGET', route_key, target.agent) ~= target.owner.route then return end
  call('HDEL', route_key, target.agent)
  call('ZREM', online_key, target.agent)
end

for _, pod in ipairs(pods) do
  if call('SPUBLISH', channel_prefix .. pod, table.concat(posts[pod].pieces)) == 0 then
    for target in pairs(posts[pod].targets) do release(target) end
  end
end

for i = 3, #results do
  local result = results[i]
  if result.target then result[2] = result.target.status end
  if result.finish then result.finish(result[2]) end
end

for bucket, at in pairs(forget_at) do call('PEXPIREAT', bucket, digits(at)) end
for name, n in pairs(counts) do call('HINCRBY', counters_key, name, n) end

-- The first publication of a minute drops the minutes long gone.
local published, minute = counts.published_envelopes, math.floor(now / 60000)
local is_first = published and call('HINCRBY', minutes_key, minute, published) == published
for _, kept in ipairs(is_first and call('HKEYS', minutes_key) or {}) do
  if tonumber(kept) <= minute - minutes_kept then call('HDEL', minutes_key, kept) end
end

return results
