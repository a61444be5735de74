-- Reads one session whose target is known.
--
-- Uses  lib/time, lib/pending
-- KEYS  1 session, 2 pending set of the target
-- ARGV  none
-- Returns {} when there is no such session, or {status, requester, target, created at, expires at, decided at or '',
--   delivery status at acceptance}; status is pending, approved, rejected or expired
local session_key, pending_key = KEYS[1], KEYS[2]

local session = redis.call('HMGET', session_key, 'status', 'requester', 'target', 'created_at', 'expires_at', 'decided_at', 'delivery', 'id')
local status, requester, target, created_at, expires_at = session[1], session[2], session[3], session[4], session[5]
if not status then return {} end

local now = read_time()
local member = format_pending(session[8], requester, created_at, expires_at)
if status == 'pending' and not is_pending(pending_key, member, now) then status = 'expired' end
return { status, requester, target, created_at, expires_at, session[6] or '', session[7] }
