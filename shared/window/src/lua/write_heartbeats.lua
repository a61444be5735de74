--- write_heartbeats
-- Writes when agents were last heard: the heartbeats that one pod gathered for one partition. It writes only what it
-- finds unchanged: the route must lead to the agent's connection under the known epoch. It gives nobody an agent,
-- begins no hold and tells nobody what waits. Every other heartbeat is left to accept, with nothing done, not even in
-- the guard.
--
-- Uses  lib/guard, lib/route, lib/time
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 clock, 6 counters, then guard buckets, keys of principals' agents and of
--       agents' credentials. A heartbeat names them by their place in KEYS.
-- ARGV  1 deadline in ms, 2 window id, 3 stale after ms, 4 forget after ms, 5 how many ms ahead a guard bucket may end, 6 with
--       several partitions the highest epoch that the pod knows, else 0, then each heartbeat: end of the guard bucket in ms, its
--       key, digest, agent, owner of the route, how many ms before the deadline it was heard, mark of the route (both lib/route),
--       and what else to renew: key of the principal's agents, key of the agent's credentials, when the last of them ends in ms,
--       separated by spaces, 0 for none, or '' if there is nothing
-- Returns {'late', now}, {'window'} if the window is another one or none (both did nothing), or {'ok', now, deadline,
--   letters}: for each heartbeat t if it was written, - if it is left to accept. The agent was heard at the deadline
--   less its ms, but not later than now.
local window_key, presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock_key, counters_key = KEYS[5], KEYS[6]
local deadline, window_id = ARGV[1], ARGV[2]
local stale_after, forget_after, guard_ahead = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local highest = tonumber(ARGV[6])
local FIRST, EACH = 7, 8

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end
-- A replica that took over may lack the newest epochs. No epoch is given twice.
if highest > tonumber(highest > 0 and redis.call('GET', clock_key) or 0) then redis.call('SET', clock_key, digits(highest)) end

local batch = { now = now, guard_ahead = guard_ahead, forget_at = {} }
-- The arguments of each write, so that it is one command for all heartbeats. By key if there are several keys.
local routes, seen, seen_of_principal, digests, written = {}, {}, {}, {}, 0

-- Returns the list of a key, empty at first.
local function list_of(lists, key)
  lists[key] = lists[key] or {}
  return lists[key]
end

local function append(list, first, second)
  list[#list + 1] = first
  list[#list + 1] = second
end

-- Returns the agents' routes, and which digests the guard has, by bucket.
local function look_up()
  local agents, digests_of, known = {}, {}, {}
  for i = FIRST, #ARGV, EACH do
    agents[#agents + 1] = ARGV[i + 3]
    append(list_of(digests_of, KEYS[tonumber(ARGV[i + 1])]), ARGV[i + 2])
  end
  for bucket, list in pairs(digests_of) do
    known[bucket] = {}
    for n, is_there in ipairs(redis.call('SMISMEMBER', bucket, unpack(list))) do known[bucket][list[n]] = is_there == 1 end
  end
  return redis.call('HMGET', route_key, unpack(agents)), known
end

local function renew(agent, seen_at, renewed)
  local agents_number, credential_number, last_end = string.match(renewed, '^(%d+) (%d+) (%d+)$')
  local agents_key, credential_key = KEYS[tonumber(agents_number)], KEYS[tonumber(credential_number)]
  if agents_key then
    append(list_of(seen_of_principal, agents_key), seen_at, agent)
    batch.forget_at[agents_key] = now + forget_after
  end
  if credential_key then batch.forget_at[credential_key] = math.min(now + forget_after, tonumber(last_end)) end
end

-- Returns seen_at and `since` of the owner's record, as texts.
local function parse_times(record, owner)
  return string.match(record, '^(%d+) (%d+)', #owner + 2)
end

-- Returns the owner's record with other times and mark (lib/route).
local function format_times(owner, seen_at, since, mark)
  return owner .. ' ' .. seen_at .. ' ' .. since .. mark
end

-- Returns whether the heartbeat was written.
local function write(record, known, ends_at, bucket, digest, agent, owner, before, mark, renewed)
  if known[bucket][digest] or not note_bucket(batch, tonumber(ends_at), bucket) then return false end
  if not is_owned(record, owner) then return false end
  local last_text, since = parse_times(record, owner)
  local heard_at, last = math.min(now, deadline - before), tonumber(last_text)
  -- A stale agent begins a new hold. An agent whose route was restored (restore_routes) must be told what waits for it.
  -- A time ahead of now comes from a clock that was set back. All three are left to accept.
  if last > now or now - last > stale_after or tonumber(since) > last then return false end
  known[bucket][digest] = true
  written = written + 1
  append(list_of(digests, bucket), digest)
  local seen_at = digits(math.max(heard_at, last))
  append(routes, agent, format_times(owner, seen_at, since, mark))
  append(seen, seen_at, agent)
  if renewed ~= '' then renew(agent, seen_at, renewed) end
  return true
end

local records, known = look_up()
local letters = {}
for n, record in ipairs(records) do
  local first = FIRST + (n - 1) * EACH
  local ends_at, number = ARGV[first], ARGV[first + 1]
  local is_written = write(record, known, ends_at, KEYS[tonumber(number)], unpack(ARGV, first + 2, first + EACH - 1))
  letters[n] = is_written and 't' or '-'
end

if written > 0 then
  redis.call('HSET', route_key, unpack(routes))
  redis.call('ZADD', presence_key, 'GT', unpack(seen))
  redis.call('ZADD', online_key, 'GT', unpack(seen))
  for key, list in pairs(seen_of_principal) do redis.call('ZADD', key, 'GT', unpack(list)) end
  for bucket, list in pairs(digests) do redis.call('SADD', bucket, unpack(list)) end
  expire_keys(batch)
  redis.call('HINCRBY', counters_key, 'websocket_accepted', written)
end
return { 'ok', digits(now), deadline, table.concat(letters) }
