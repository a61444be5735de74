-- Decides a session, in its partition: the second of the three steps of session.approve and session.reject. Before it the
-- decision reserves its place in the guard of the requester's partition (reserve_decision), after it the acceptance
-- there delivers it. The same envelope may come again after an outage between the steps, and gets the same answer.
--
-- Uses  lib/deadline, lib/session_records, lib/time
-- KEYS  1 window, 2 session, 3 asked of the target
-- ARGV  1 deadline in ms, 2 window id, 3 session id, 4 target (the decision's from), 5 requester (its to), 6 decision, a or
--       r, or - to decide nothing and only be told the state, 7 digest of the decision's text, 8 ms a session is kept after
--       its end, 9 prefix of the keys of principals, 10 ms for which a proof is fresh
-- Returns {'late', now}, {'window'} when the window is another one or none, {'unknown_session'}, {'not_your_session'},
--   {'session_closed'}, or {'state', state, decided at or ''}; the state is p, a, r or e, which is expired
local window_key, session_key, asked_key = KEYS[1], KEYS[2], KEYS[3]
local deadline, window_id, session_id, target, requester = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local decision, text_digest, session_kept = ARGV[6], ARGV[7], ARGV[8]
local principal_prefix, proof_fresh = ARGV[9], ARGV[10]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local records = make_session_records(now)
local record = redis.call('GET', session_key)
if not record then return { 'unknown_session' } end
local status, _, asker, asked_agent, decided_at, decided_by = records.parse_session(record)
if asked_agent ~= records.agent_name(target) or asker ~= records.agent_name(requester) then
  return { 'not_your_session' }
end

local asked = records.read_asked(asked_key)
local place = records.place_of(asked, records.name_of(session_id))
if status == 'p' and not place then status = 'e' end
if decision == '-' or decided_by == text_digest then return { 'state', status, decided_at } end
if status ~= 'p' then return { 'session_closed' } end

local decided = table.remove(asked.pending, place)
local rest, rest_ends_at = records.format_asked(asked, proof_fresh)
redis.call('SET', session_key, records.decide(record, decision, digits(now), text_digest), 'PX', session_kept)
if rest then redis.call('SET', asked_key, rest, 'PXAT', rest_ends_at) else redis.call('PEXPIREAT', asked_key, 1) end
-- Last, and passed over when they fail: on a cluster that moves the slot a key that is not passed in cannot be written while
-- it is not there, and these counts end by themselves.
redis.pcall('ZREM', principal_prefix .. decided.principal, decided.name)
redis.pcall('ZREM', principal_prefix .. requester, decided.name)
return { 'state', decision, digits(now) }
