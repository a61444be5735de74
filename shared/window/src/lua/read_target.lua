-- What guides tell of one target: its presence, what was accepted for it, and what it decided of one session.
--
-- Uses  lib/time, lib/route, lib/pending
-- KEYS  1 presence, 2 route, 3 target proof, 4 pending set of the target, 5 session
-- ARGV  1 agent
-- Returns {now, last seen or '', since when the connection that has the agent holds it, or '' when none has it, its last
--   proof or '', its newest pending session or '', state of the session}; the state is pending, approved, rejected or
--   expired, and '' when there is no such session of this target
local presence_key, route_key, proof_key, pending_key, session_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local agent = ARGV[1]

local now = read_time()
local route = redis.call('HGET', route_key, agent)
local session = redis.call('HMGET', session_key, 'target', 'status', 'id', 'requester', 'created_at', 'expires_at')
local state = session[1] == agent and session[2] or ''
if state == 'pending' then
  local member = format_pending(session[3], session[4], session[5], session[6])
  if not is_pending(pending_key, member, now) then state = 'expired' end
end
return {
  digits(now),
  redis.call('ZSCORE', presence_key, agent) or '',
  route and parse_since(route) or '',
  redis.call('GET', proof_key) or '',
  redis.call('ZRANGE', pending_key, -1, -1)[1] or '',
  state,
}
