-- Sessions. A decision (session.approve or session.reject) takes three steps, since the requester and the session may be in
-- different partitions, and a script runs in one:
--   1 reserve_decision  in the requester's partition puts the decision's digest into the replay guard, before anything takes
--                       effect. So a replay, or another envelope with this digest, cannot decide a second time.
--   2 decide_session    in the session's partition decides, once for each text. It comes before the acceptance, so that the
--                       requester is never told of a decision that is not in effect.
--   3 accept            in the requester's partition delivers the decision, and removes its reservation.
-- After a fault between the steps the same envelope may come again: each step then gives the same answer.

--- reserve_decision
-- Step 1 of a decision: reserves its place in the replay guard with its digest, and with the digest of its text. Every
-- other envelope with this digest is a duplicate from then on. The digest of the text stays until the decision is
-- accepted.
--
-- Uses  lib/guard, lib/time
-- KEYS  1 window, 2 seen, the guard bucket
-- ARGV  1 deadline in ms, 2 window id, 3 end of the bucket in ms, 4 how many ms ahead it may end, 5 digest, 6 digest of the text
-- Returns {'late', now}, {'window'} if the window is another one or none, {'clock_skew'} if the guard cannot hold
--   such a ts, {'reserved'}, or {'taken'} if an envelope with this digest was accepted: this one, or another
local window_key, bucket_key = KEYS[1], KEYS[2]
local deadline, window_id, ends_at, guard_ahead = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local digest, text_digest = ARGV[5], ARGV[6]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local batch = { now = now, guard_ahead = tonumber(guard_ahead), forget_at = {} }
if not note_bucket(batch, tonumber(ends_at), bucket_key) then return { 'clock_skew' } end
if redis.call('SADD', bucket_key, digest) == 0 then
  return { redis.call('SISMEMBER', bucket_key, text_digest) == 1 and 'reserved' or 'taken' }
end
redis.call('SADD', bucket_key, text_digest)
expire_keys(batch)
return { 'reserved' }

--- decide_session
-- Step 2 of a decision: decides the session in its partition.
--
-- Uses  lib/session_records, lib/time
-- KEYS  1 window, 2 session, 3 asked: the target's pending sessions
-- ARGV  1 deadline in ms, 2 window id, 3 session id, 4 target (the decision's from), 5 requester (its to), 6 decision: a, r, or
--       - to return the state only, 7 digest of the decision's text, 8 ms a session is kept after its end, 9 prefix of the keys
--       of principals, 10 ms a proof is fresh
-- Returns {'late', now}, {'window'} if the window is another one or none, {'unknown_session'}, {'not_your_session'},
--   {'session_closed'}, or {'state', state, decided at or ''}. The state is p, a, r, or e for expired.
local window_key, session_key, pending_key = KEYS[1], KEYS[2], KEYS[3]
local deadline, window_id, session_id, target, requester = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local decision, text_digest, session_kept = ARGV[6], ARGV[7], ARGV[8]
local principal_prefix, proof_fresh = ARGV[9], ARGV[10]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local records = make_session_records(now)
local record = redis.call('GET', session_key)
if not record then return { 'unknown_session' } end
local status, _, asker, target_name, decided_at, decided_by = records.parse_session(record)
if target_name ~= records.agent_name(target) or asker ~= records.agent_name(requester) then
  return { 'not_your_session' }
end

local at_target = records.read_pending(pending_key)
local place = records.place_of(at_target, records.name_of(session_id))
if status == 'p' and not place then status = 'e' end
if decision == '-' or decided_by == text_digest then return { 'state', status, decided_at } end
if status ~= 'p' then return { 'session_closed' } end

local decided = table.remove(at_target.pending, place)
local rest, rest_ends_at = records.format_pending(at_target, proof_fresh)
redis.call('SET', session_key, records.decide(record, decision, digits(now), text_digest), 'PX', session_kept)
if rest then redis.call('SET', pending_key, rest, 'PXAT', rest_ends_at) else redis.call('PEXPIREAT', pending_key, 1) end
-- Last, and without an error: while a cluster moves the slot, a key that was not passed in cannot be written if it is
-- not there. These counts expire.
redis.pcall('ZREM', principal_prefix .. decided.principal, decided.name)
redis.pcall('ZREM', principal_prefix .. requester, decided.name)
return { 'state', decision, digits(now) }

--- bind_claim
-- Binds an Idempotency-Key to the body that it was first used with, before the acceptance. Two requests with one body
-- have one target, so they meet in the claim that accept keeps. Another body may have a target in another partition: it
-- is found here, in the partition of the key's digest. A second call only extends the time.
--
-- Uses  lib/time
-- KEYS  1 window, 2 idempotency body
-- ARGV  1 deadline in ms, 2 window id, 3 body digest, 4 ms a claim is kept, 5 1 while Redis is short of memory, else 0
-- Returns {'late', now}, {'window'} if the window is another one or none, {'bound'}, {'reused'} if the key is bound
--   to another body, or {'over_capacity'} if Redis is short of memory and the key is new
local window_key, body_key = KEYS[1], KEYS[2]
local deadline, window_id, body, claim_kept, is_short = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local bound = redis.call('GET', body_key)
if bound and bound ~= body then return { 'reused' } end
if not bound and is_short == '1' then return { 'over_capacity' } end
-- A full Redis refuses SET even if it needs no memory.
if bound then redis.call('PEXPIRE', body_key, claim_kept) else redis.call('SET', body_key, body, 'PX', claim_kept) end
return { 'bound' }

--- count_sessions
-- Counts what limits a session request, in a partition that is not its target's.
--
-- Uses  lib/time
-- KEYS  1 principal, 2 requester as a principal below its issuer, 3 opened by the requester, 4 opened by the principal
-- ARGV  none
-- Returns {the principal's pending sessions, the requester's, sessions that the requester opened within a minute,
--   those that the principal opened}
local principal_key, agent_key, opened_key, principal_opened_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local now = read_time()
return {
  redis.call('ZCOUNT', principal_key, '(' .. digits(now), '+inf'),
  redis.call('ZCOUNT', agent_key, '(' .. digits(now), '+inf'),
  tonumber(redis.call('GET', opened_key) or 0),
  tonumber(redis.call('GET', principal_opened_key) or 0),
}

--- read_session
-- Reads one session of a known target.
--
-- Uses  lib/session_records, lib/time
-- KEYS  1 session, 2 asked: the target's pending sessions
-- ARGV  1 session id
-- Returns {} if there is no such session, or {state, record of the session}. The state is p, a, r, or e for expired.
local session_key, pending_key = KEYS[1], KEYS[2]
local session_id = ARGV[1]

local record = redis.call('GET', session_key)
if not record then return {} end
local now = read_time()
local records = make_session_records(now)
local state = records.parse_session(record)
if state == 'p' and not records.place_of(records.read_pending(pending_key), records.name_of(session_id)) then state = 'e' end
return { state, record }
