-- Presence: reads, counts and removes what accept, write_heartbeats and restore_routes write.

--- read_presence
-- Presence of one agent.
--
-- Uses  lib/agent_presence, lib/time
-- KEYS  1 presence, 2 online, 3 route
-- ARGV  1 agent
-- Returns {now, last seen or '', since when its connection holds it, mark of the route (lib/route)}. The last two are
--   '' if no connection has it, or if its pod missed the last publish.
local presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3]
local agent = ARGV[1]

return { digits(read_time()), presence_of(presence_key, online_key, route_key, agent) }

--- read_agents
-- Presence of several agents of one partition.
--
-- Uses  lib/agent_presence, lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 agents of a principal
-- ARGV  1 '1' to leave out those that are counted for the principal, else '0', then agent ids
-- Returns {now, then for each agent: id, last seen or '', and as read_presence since and mark}
local presence_key, online_key, route_key, agents_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local passes_over_counted = ARGV[1] == '1'

local reply = { digits(read_time()) }

local function add(agent)
  local n = #reply
  reply[n + 1] = agent
  reply[n + 2], reply[n + 3], reply[n + 4] = presence_of(presence_key, online_key, route_key, agent)
end

for i = 2, #ARGV do
  if not passes_over_counted or not redis.call('ZSCORE', agents_key, ARGV[i]) then add(ARGV[i]) end
end
return reply

--- read_target
-- What guides tell of one target: its presence, its last proof, and one session.
--
-- Uses  lib/agent_presence, lib/session_records, lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 asked: the target's pending sessions, 5 session
-- ARGV  1 agent, 2 session id
-- Returns {now, last seen or '', as read_presence since and mark, last proof or '', newest pending session or '',
--   state of the session, its record}. The state is p, a, r, or e for expired. Both are '' if the target has no such
--   session.
local presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3]
local pending_key, session_key = KEYS[4], KEYS[5]
local agent, session_id = ARGV[1], ARGV[2]

local now = read_time()
local records = make_session_records(now)
local last_seen, since, mark = presence_of(presence_key, online_key, route_key, agent)
local at_target = records.read_pending(pending_key)
local record = redis.call('GET', session_key) or ''
local state, _, _, target = records.parse_session(record)
if target ~= records.agent_name(agent) then state, record = '', '' end
if state == 'p' and not records.place_of(at_target, records.name_of(session_id)) then state = 'e' end
return {
  digits(now),
  last_seen,
  since,
  mark,
  at_target.proof,
  at_target.pending[1] and at_target.pending[#at_target.pending].line or '',
  state,
  record,
}

--- list_agents
-- The agents of one partition that are counted for a principal, last seen first.
--
-- KEYS  1 agents of the principal
-- ARGV  1 how many at most
-- Returns {how many there are, then agent and last seen of each}
local agents_key, most = KEYS[1], tonumber(ARGV[1])

local reply = redis.call('ZRANGE', agents_key, 0, most - 1, 'REV', 'WITHSCORES')
table.insert(reply, 1, redis.call('ZCARD', agents_key))
return reply

--- count_presence
-- Counts the agents of one partition by presence. The cost does not grow with their number.
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
-- Forgets agents that were not seen for long, a bounded number in one call, so that Redis is not held up.
--
-- Uses  lib/time
-- KEYS  1 presence, 2 online, 3 route, 4 accept from
-- ARGV  1 forget after ms, 2 how many agents at most
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
-- Removes the routes of closed connections, unless a newer owner has them.
--
-- Uses  lib/route
-- KEYS  1 online, 2 route
-- ARGV  pairs of agent and owner: pod and connection, with an epoch if only that one is meant
-- Returns how many routes were removed
local online_key, route_key = KEYS[1], KEYS[2]

local released = 0
for i = 1, #ARGV, 2 do
  if release_route(route_key, online_key, ARGV[i], ARGV[i + 1]) then released = released + 1 end
end
return released

--- disconnect
-- Asks the pod of an agent to close its connection. Writes nothing: the pod releases the routes when the connection
-- closes.
--
-- Uses  lib/route, lib/time
-- KEYS  1 window, 2 route
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 agent
-- Returns {'late', now}, {'window'} if the window is another one or none (both did nothing), {'ok', 1} if the agent's
--   pod heard it, or {'ok', 0} if nobody did, or no connection has the agent
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
-- Sets or clears the mark of congested connections, unless a newer owner has the route. An agent that has caught up was
-- not told what waits for it. So its hold begins again, and its next heartbeat tells it.
--
-- Uses  lib/route, lib/session_records, lib/time
-- KEYS  1 route, then the keys of each agent's pending (asked) and decided sessions, named by their place in KEYS
-- ARGV  pairs of a route and its keys, each: agent, owner (pod and connection, with an epoch if only that one is meant),
--       mark (`!`, or '' to clear it), and the places of the agent's two keys
-- Returns how many routes were written
local route_key = KEYS[1]
local EACH = 5
local now = read_time()
local records = make_session_records(now)

local function has_waiting(pending_key, decided_key)
  return redis.call('ZCARD', decided_key) > 0 or #records.lines_of(records.read_pending(pending_key)) > 0
end

local written = 0
for i = 1, #ARGV, EACH do
  local agent, owner, mark, pending_number, decided_number = unpack(ARGV, i, i + EACH - 1)
  local record = redis.call('HGET', route_key, agent)
  if is_owned(record, owner) then
    local route, since = parse_route(record), parse_since(record)
    if mark == '' and has_waiting(KEYS[tonumber(pending_number)], KEYS[tonumber(decided_number)]) then
      since = digits(math.max(now, tonumber(route.seen_at) + 1))
    end
    redis.call('HSET', route_key, agent,
      format_route(route.pod, route.connection, route.epoch, route.seen_at, since, mark))
    written = written + 1
  end
end
return written
