-- Decides sessions of one partition: the first of the two steps of session.approve and session.reject; the second is
-- the acceptance in the requester's partition. The same envelope may come again after an outage between the two, and
-- gets the same answer.
--
-- Uses  lib/time, lib/pending
-- KEYS  1 window, 2 session, 3 pending set of the target
-- ARGV  1 window id, 2 target (the decision's from), 3 requester (its to), 4 approved or rejected, 5 digest of the
--       envelope, 6 ms a session is kept after its end
-- Returns {'window'} when the window is another one or none, {'unknown_session'}, {'not_your_session'},
--   {'session_closed'}, or {'decided', status}
local window_key, session_key, pending_key = KEYS[1], KEYS[2], KEYS[3]
local window_id, target, requester = ARGV[1], ARGV[2], ARGV[3]
local decision, digest, session_kept = ARGV[4], ARGV[5], tonumber(ARGV[6])

if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local session = redis.call('HMGET', session_key, 'status', 'target', 'requester', 'created_at', 'expires_at', 'decided_by', 'id')
local status, created_at, expires_at, decided_by = session[1], session[4], session[5], session[6]
if not status then return { 'unknown_session' } end
if session[2] ~= target or session[3] ~= requester then return { 'not_your_session' } end
if decided_by == digest and status == decision then return { 'decided', status } end

local now = read_time()
local member = format_pending(session[7], requester, created_at, expires_at)
if not is_pending(pending_key, member, now) then return { 'session_closed' } end

redis.call('ZREM', pending_key, member)
redis.call('HSET', session_key, 'status', decision, 'decided_at', digits(now), 'decided_by', digest)
redis.call('PEXPIRE', session_key, session_kept)
return { 'decided', decision }
