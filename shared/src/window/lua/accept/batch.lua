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
--         how many arguments follow, kind, minute of ts, guard key, and by kind
--         messages:             origin, then digest, agent and text of each: of no session, without a claim
--         register, heartbeat:  digest, agent, pod, connection, pending key
--         message:              digest, agent, origin, text, session id (of a decision, or -), claim
--         session_request:      digest, agent, origin, text, session id, session key, pending key, requester, ttl ms, claim
--       origin: websocket or gateway; claim: nothing, or key, body digest and envelope id; no two items have one key.
-- Returns {'window'} when the window is another one or none (nothing was done), or {'ok', now, letters, result…}.
--   letters has one letter for each of the `messages`, in order: O, S, F or N, accepted for a target that is online,
--   stale, offline or not_seen; o, s, f or n, the same of a duplicate; c, clock_skew. The other items have one result each:
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

local results, message_targets, message_is_new = { 'ok', now_text, '' }, {}, {}
local UNGUARDED = { status = 'clock_skew' }
local counts, forget_at, targets, posts = {}, {}, {}, {}

local function count(name, n)
  counts[name] = (counts[name] or 0) + n
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

-- A bucket holds every envelope of its minute for as long as such a ts could pass; a ts outside cannot be guarded.
local function guardable(minute, bucket)
  forget_at[bucket] = (minute + 1) * 60000 + guard_margin
  return now < forget_at[bucket] and minute * 60000 <= now + guard_margin
end

local function owner_of(agent)
  local route = call('HGET', route_key, agent)
  if not route then return nil end
  local identity, pod, connection, epoch, seen_at = string.match(route, '^((%S+) (%S+) (%S+)) (%S+)$')
  return { identity = identity, pod = pod, connection = connection, epoch = epoch, seen_at = seen_at }
end

local function target_of(agent)
  if targets[agent] then return targets[agent] end
  local owner = owner_of(agent)
  local target = { agent = agent, status = 'not_seen' }
  target.last_seen = owner and owner.seen_at or call('ZSCORE', presence_key, agent) or ''
  local age = now - (tonumber(target.last_seen) or -math.huge)
  if owner and age <= stale_after then
    target.owner, target.status = owner, 'online'
  elseif age <= offline_after then target.status = 'stale'
  elseif age <= forget_after then target.status = 'offline' end
  targets[agent] = target
  return target
end

local function post_of(pod)
  if not posts[pod] then
    posts[pod] = { pod = pod, pieces = {}, targets = {} }
    posts[#posts + 1] = posts[pod]
  end
  return posts[pod]
end

-- Stands before each line of a post; the first one is cut off again.
local LINE_END = '\n'

-- Lua hashes every string that it makes, all of it: a text is put into a message once, when its pieces are joined.
local function deliver(agent, mark, text)
  local target = target_of(agent)
  local owner = target.owner
  if not owner then return target end
  if not owner.post then
    owner.post, owner.head = post_of(owner.pod), words(LINE_END .. 'deliver', owner.connection, owner.epoch, agent, '')
    table.insert(owner.post.targets, target)
  end
  local pieces = owner.post.pieces
  local n = #pieces
  pieces[n + 1], pieces[n + 2], pieces[n + 3] = owner.head, mark, text
  return target
end

local function count_publications(n, origin, gateway_counter)
  count('published_envelopes', n)
  count(origin == 'websocket' and 'websocket_accepted' or gateway_counter, n)
end

-- The result of a message is a letter; its target's status is known after the publish.
local function take_messages(first, last, bucket)
  local fresh = 0
  for i = first + 1, last, 3 do
    local digest, agent = ARGV[i], ARGV[i + 1]
    local is_new = bucket and call('SADD', bucket, digest) == 1
    local n = #message_targets + 1
    message_is_new[n] = is_new
    message_targets[n] = not bucket and UNGUARDED or is_new and deliver(agent, '- ', ARGV[i + 2]) or target_of(agent)
    if is_new then fresh = fresh + 1 end
  end
  if fresh > 0 then count_publications(fresh, ARGV[first], 'simple_send_accepted') end
end

local function live_pending(pending_key)
  local live = {}
  for _, member in ipairs(call('ZRANGE', pending_key, 0, -1)) do
    local expires_at = tonumber(string.match(member, '(%d+)$'))
    if expires_at > now then live[#live + 1] = member else call('ZREM', pending_key, member) end
  end
  return live
end

-- A value that only ever rises, near the time of day in µs, which no burst outruns: epochs stay in order over windows.
local function tick()
  local value = digits(math.max((call('GET', clock_key) or 0) + 1, time[1] * 1000000 + time[2]))
  call('SET', clock_key, value)
  return value
end
