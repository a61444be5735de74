-- What guides tell of one target: its presence, what was accepted for it, and what it decided of one session.
--
-- Uses  lib/time, lib/route, lib/session_records
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
