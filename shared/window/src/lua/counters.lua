-- What is counted for the reports.

--- flush_counters
-- Adds what one process counted since its last flush, and what its visitors did. A flush has a number, so the same one
-- is not counted twice. Journeys are bounded: the visitors seen last, the last actions of each. Each written journey
-- gets a new version, by which readers know what they have. Versions are µs of Redis' clock and only rise, so a replica
-- that takes over gives none twice.
--
-- Uses  lib/journey, lib/time
-- KEYS  1 window, 2 flushes, 3 traffic, 4 surfaces, 5 visitors, 6 journeys, 7 journeys seen, 8 journey versions,
--       9 last journey version
-- ARGV  1 window id, 2 process, 3 number of the flush, 4 how many traffic pairs, 5 how many surface pairs, 6 how many visitors,
--       7 most journeys, 8 most actions of a journey; then the pairs of name and count, the visitors, and each journey: visitor,
--       count of actions, bits of their stages, how many actions follow, and these as name and age in ms, oldest first
-- Returns 'window' if the window is another one or none, else 'ok'
local window_key, flushes_key, traffic_key, surfaces_key, visitors_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local journeys_key, journeys_seen_key, versions_key, last_version_key = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local window_id, process, flush = ARGV[1], ARGV[2], ARGV[3]
local traffic_pairs, surface_pairs, visitors = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most_journeys, most_actions = tonumber(ARGV[7]), tonumber(ARGV[8])

local call = redis.call
if call('HGET', window_key, 'id') ~= window_id then return 'window' end
if call('HGET', flushes_key, process) == flush then return 'ok' end
call('HSET', flushes_key, process, flush)

local cursor = 9
local function take()
  cursor = cursor + 1
  return ARGV[cursor - 1]
end

for _ = 1, traffic_pairs do call('HINCRBY', traffic_key, take(), take()) end
for _ = 1, surface_pairs do call('HINCRBY', surfaces_key, take(), take()) end
if visitors > 0 then call('PFADD', visitors_key, unpack(ARGV, cursor, cursor + visitors - 1)) end
cursor = cursor + visitors

local now, microseconds = read_time()
local last_version = tonumber(call('GET', last_version_key) or 0)
local version = math.max(microseconds, last_version)

-- Returns the actions that follow, and the times of the first and the last.
local function take_actions()
  local actions = {}
  local first, last
  for i = 1, tonumber(take()) do
    local name = take()
    last = now - tonumber(take())
    first = first or last
    actions[i] = format_action(name, last)
  end
  return actions, first, last
end

local function go_on(visitor, count, stages, added, first, last)
  local kept = call('HGET', journeys_key, visitor)
  local actions = table.concat(added, ' ')
  if kept then
    local first_seen, last_seen, counted, reached, earlier = parse_journey(kept)
    actions, stages = join_actions(earlier, added, most_actions), bit.bor(stages, reached)
    count, first, last = count + counted, math.min(first, first_seen), math.max(last, last_seen)
  end
  call('HSET', journeys_key, visitor, format_journey(first, last, count, stages, actions))
  call('ZADD', journeys_seen_key, digits(last), visitor)
  version = version + 1
  call('HSET', versions_key, visitor, digits(version))
end

if cursor > #ARGV then return 'ok' end

while cursor <= #ARGV do
  local visitor, count, stages = take(), tonumber(take()), tonumber(take())
  go_on(visitor, count, stages, take_actions())
end
call('INCRBY', last_version_key, digits(version - last_version))

local surplus = call('ZCARD', journeys_seen_key) - most_journeys
if surplus > 0 then
  local oldest = call('ZRANGE', journeys_seen_key, 0, surplus - 1)
  call('ZREM', journeys_seen_key, unpack(oldest))
  call('HDEL', journeys_key, unpack(oldest))
  call('HDEL', versions_key, unpack(oldest))
end
return 'ok'

--- read_journeys
-- Reads the versions of all journeys, at most 200, and the journeys that the reader does not have, with at most 50
-- actions each. It does not read who the visitors are.
--
-- KEYS  1 journeys, 2 journey versions
-- ARGV  1 the highest version that the reader has
-- Returns {versions of all journeys, separated by spaces; then version and record (lib/journey) of each newer
--   journey}
local journeys_key, versions_key = KEYS[1], KEYS[2]
local highest = tonumber(ARGV[1])

local versions = redis.call('HGETALL', versions_key)
local all, reply = {}, { '' }
for i = 2, #versions, 2 do
  local version = versions[i]
  local is_new = tonumber(version) > highest
  local record = is_new and redis.call('HGET', journeys_key, versions[i - 1])
  if record or not is_new then all[#all + 1] = version end
  if record then
    reply[#reply + 1] = version
    reply[#reply + 1] = record
  end
end
reply[1] = table.concat(all, ' ')
return reply

--- add_feedback
-- Counts one feedback by its labels. Its text does not come here.
--
-- Uses  lib/time
-- KEYS  1 window, 2 feedback
-- ARGV  1 deadline in ms, 2 window id, then the names of the counts to raise
-- Returns {'late', now}, {'window'} if the window is another one or none, else {'ok'}
local window_key, feedback_key = KEYS[1], KEYS[2]
local deadline, window_id = ARGV[1], ARGV[2]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end
for i = 3, #ARGV do redis.call('HINCRBY', feedback_key, ARGV[i], 1) end
return { 'ok' }

--- snapshot
-- The figures of one partition for the reports. Every part is bounded.
--
-- KEYS  1 window, 2 counters, 3 published, 4 proofs, 5 last online proof, 6 proofs within one principal
-- ARGV  none
-- Returns {window id or '', counters, published, proofs, last online proof or '', proofs within one principal}.
--   Hashes are name and value in turn.
local window_key, counters_key, published_key, proofs_key, last_proof_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local proofs_within_key = KEYS[6]

return {
  redis.call('HGET', window_key, 'id') or '',
  redis.call('HGETALL', counters_key),
  redis.call('HGETALL', published_key),
  redis.call('LRANGE', proofs_key, 0, -1),
  redis.call('HGET', last_proof_key, 'proof') or '',
  redis.call('LRANGE', proofs_within_key, 0, -1),
}

--- snapshot_control
-- The figures of the whole window for the reports. Every part is bounded.
--
-- Uses  lib/time
-- KEYS  1 window, 2 traffic, 3 surfaces, 4 feedback, 5 visitors
-- ARGV  none
-- Returns {now, window id or '', traffic, surfaces, feedback, visitors, what record_promotions noted}. Hashes are
--   name and value in turn.
local window_key, traffic_key, surfaces_key, feedback_key, visitors_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local now = read_time()
return {
  digits(now),
  redis.call('HGET', window_key, 'id') or '',
  redis.call('HGETALL', traffic_key),
  redis.call('HGETALL', surfaces_key),
  redis.call('HGETALL', feedback_key),
  redis.call('PFCOUNT', visitors_key),
  redis.call('HGET', window_key, 'promoted') or '',
}
