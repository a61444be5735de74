--- read_presence
-- Presence of one agent.
--
-- Uses  lib/route, lib/time
-- KEYS  1 presence, 2 online, 3 route
-- ARGV  1 agent
-- Returns {now, last seen or '', since when the connection that has the agent holds it, its mark (lib/route)}; the last two
--   are '' when none has it, or its pod was not heard last
local presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3]
local agent = ARGV[1]

local now = read_time()
local route = redis.call('HGET', route_key, agent)
local last_seen = redis.call('ZSCORE', presence_key, agent)
local since, mark = '', ''
if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
return { digits(now), last_seen or '', since, mark }

--- read_agents
-- Agents of one partition with their presence, by their ids.
--
-- Uses  lib/route, lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 agents of a principal
-- ARGV  1 '1' to pass over those that are counted for the principal, else '0', then ids
-- Returns {now, agent, last seen or '', since when the connection that has the agent holds it, its mark (lib/route), then the next
--   agent}; since and mark are '' when no connection has it, or its pod was not heard last
local presence_key, online_key, route_key, agents_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local passes_over_counted = ARGV[1] == '1'

local reply = { digits(read_time()) }

local function add(agent)
  local route = redis.call('HGET', route_key, agent)
  local since, mark = '', ''
  if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
  local n = #reply
  reply[n + 1], reply[n + 2] = agent, redis.call('ZSCORE', presence_key, agent) or ''
  reply[n + 3], reply[n + 4] = since, mark
end

for i = 2, #ARGV do
  if not passes_over_counted or not redis.call('ZSCORE', agents_key, ARGV[i]) then add(ARGV[i]) end
end
return reply

--- read_target
-- What guides tell of one target: its presence, what was accepted for it, and what it decided of one session.
--
-- Uses  lib/route, lib/session_records, lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 asked of the target, 5 session
-- ARGV  1 agent, 2 session id
-- Returns {now, last seen or '', since when the connection that has the agent holds it, its mark (lib/route), its last proof
--   or '', its newest pending session or '', state of the session, its record}; since and mark are '' when no connection
--   has it, or its pod was not heard last; the state is p, a, r or e, which is expired; both are '' when there is no such session of this target
local presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3]
local asked_key, session_key = KEYS[4], KEYS[5]
local agent, session_id = ARGV[1], ARGV[2]

local now = read_time()
local records = make_session_records(now)
local route = redis.call('HGET', route_key, agent)
local since, mark = '', ''
if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
local asked = records.read_asked(asked_key)
local record = redis.call('GET', session_key) or ''
local state, _, _, target = records.parse_session(record)
if target ~= records.agent_name(agent) then state, record = '', '' end
if state == 'p' and not records.place_of(asked, records.name_of(session_id)) then state = 'e' end
return {
  digits(now),
  redis.call('ZSCORE', presence_key, agent) or '',
  since,
  mark,
  asked.proof,
  asked.pending[1] and asked.pending[#asked.pending].line or '',
  state,
  record,
}

--- list_agents
-- The agents of one partition that are counted for a principal, those seen last first.
--
-- KEYS  1 agents of the principal
-- ARGV  1 most of them
-- Returns {how many there are, agent, last seen, then the next agent}
local agents_key, most = KEYS[1], tonumber(ARGV[1])

local reply = redis.call('ZRANGE', agents_key, 0, most - 1, 'REV', 'WITHSCORES')
table.insert(reply, 1, redis.call('ZCARD', agents_key))
return reply

--- count_presence
-- Counts the agents of one partition by presence; the cost does not grow with their number.
--
-- Uses  lib/time
-- KEYS  1 presence, 2 online
-- ARGV  1 stale after ms, 2 critical stale after ms, 3 offline after ms, 4 forget after ms
-- Returns {online, stale, critical stale, offline}
local presence_key, online_key = KEYS[1], KEYS[2]
local stale_after, critical_after = tonumber(ARGV[1]), tonumber(ARGV[2])
local offline_after, forget_after = tonumber(ARGV[3]), tonumber(ARGV[4])

local now = read_time()
local function seen_within(key, age)
  return redis.call('ZCOUNT', key, digits(now - age), '+inf')
end

local online = seen_within(online_key, stale_after)
local not_critical = seen_within(presence_key, math.min(critical_after, offline_after))
local not_offline = seen_within(presence_key, offline_after)
local known = seen_within(presence_key, forget_after)
return { online, not_critical - online, not_offline - not_critical, known - not_offline }

--- prune_presence
-- Forgets agents that were not seen for long; bounded, so that it never holds Redis up.
--
-- Uses  lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 accept from
-- ARGV  1 forget after ms, 2 most agents a call
-- Returns how many were forgotten
local presence_key, online_key, route_key, accept_from_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local forget_after, most = tonumber(ARGV[1]), tonumber(ARGV[2])

local now = read_time()
local agents = redis.call('ZRANGE', presence_key, '-inf', '(' .. digits(now - forget_after), 'BYSCORE', 'LIMIT', 0, most)
if #agents == 0 then return 0 end
redis.call('ZREM', presence_key, unpack(agents))
redis.call('ZREM', online_key, unpack(agents))
redis.call('HDEL', route_key, unpack(agents))
redis.call('HDEL', accept_from_key, unpack(agents))
return #agents

--- release
-- Removes the routes of connections that are gone, unless a newer owner has them.
--
-- Uses  lib/route
-- KEYS  1 online, 2 route
-- ARGV  pairs of agent and owner: pod and connection, and the epoch unless the release is for any
-- Returns how many routes were removed
local online_key, route_key = KEYS[1], KEYS[2]

local released = 0
for i = 1, #ARGV, 2 do
  if release_route(route_key, online_key, ARGV[i], ARGV[i + 1]) then released = released + 1 end
end
return released

--- disconnect
-- Has the connection of an agent closed: asks the pod that has it. Nothing is written here: the pod releases the routes, as
-- whenever a connection closes.
--
-- Uses  lib/route, lib/time
-- KEYS  1 window, 2 route
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 agent
-- Returns {'late', now}, {'window'} when the window is another one or none, nothing being done of either, or
--   {'ok', 1} when the agent's pod heard it, {'ok', 0} when nobody did, or no connection has the agent
local window_key, route_key = KEYS[1], KEYS[2]
local deadline, window_id, channel_prefix, agent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end
local record = redis.call('HGET', route_key, agent)
if not record then return { 'ok', 0 } end
local route = parse_route(record)
local line = format_line('disconnect', route.connection, route.epoch, agent)
return { 'ok', redis.call('SPUBLISH', channel_prefix .. route.pod, line) }

--- mark_congestion
-- Marks the routes of connections that read too slowly, or clears their marks, unless a newer owner has them. An agent that has caught
-- up, and for which something waits, was not told of it meanwhile: a new hold begins, and its next heartbeat tells it.
--
-- Uses  lib/route, lib/session_records, lib/time
-- KEYS  1 route, then what is asked of an agent, and what was decided of its requests, which are named by their places in KEYS
-- ARGV  agent, owner (pod and connection, and the epoch unless it is for any), mark (`!`, or nothing to clear it), and the places of the
--       agent's keys, of a route, then of the next
-- Returns how many routes were written
local route_key = KEYS[1]
local EACH = 5
local now = read_time()
local records = make_session_records(now)

local function has_waiting(asked_key, decided_key)
  return redis.call('ZCARD', decided_key) > 0 or #records.lines_of(records.read_asked(asked_key)) > 0
end

local written = 0
for i = 1, #ARGV, EACH do
  local agent, owner, mark, asked_number, decided_number = unpack(ARGV, i, i + EACH - 1)
  local record = redis.call('HGET', route_key, agent)
  if is_owned(record, owner) then
    local route, since = parse_route(record), parse_since(record)
    if mark == '' and has_waiting(KEYS[tonumber(asked_number)], KEYS[tonumber(decided_number)]) then
      since = digits(math.max(now, tonumber(route.seen_at) + 1))
    end
    redis.call('HSET', route_key, agent,
      format_route(route.pod, route.connection, route.epoch, route.seen_at, since, mark))
    written = written + 1
  end
end
return written
