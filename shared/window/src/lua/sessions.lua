--- reserve_decision
-- Reserves the place of a session decision in the replay guard of its requester's partition, before it takes effect: its
-- digest, for which every other envelope is a duplicate from then on, and the digest of its text, by which it is known itself
-- until it is accepted.
--
-- Uses  lib/guard, lib/time
-- KEYS  1 window, 2 seen, the guard bucket
-- ARGV  1 deadline in ms, 2 window id, 3 end of the bucket in ms, 4 how many ms ahead that may lie, 5 digest, 6 digest of the text
-- Returns {'late', now}, {'window'} when the window is another one or none, {'clock_skew'} when ts is beyond what the guard can hold,
--   {'reserved'}, or {'taken'} when an envelope of this digest was accepted: this one, or another
local window_key, bucket_key = KEYS[1], KEYS[2]
local deadline, window_id, ends_at, guard_ahead = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local digest, text_digest = ARGV[5], ARGV[6]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local batch = { now = now, guard_ahead = tonumber(guard_ahead), forget_at = {} }
if not is_guardable(batch, tonumber(ends_at), bucket_key) then return { 'clock_skew' } end
if redis.call('SADD', bucket_key, digest) == 0 then
  return { redis.call('SISMEMBER', bucket_key, text_digest) == 1 and 'reserved' or 'taken' }
end
redis.call('SADD', bucket_key, text_digest)
expire_keys(batch)
return { 'reserved' }

--- decide_session
-- Decides a session, in its partition: the second of the three steps of session.approve and session.reject. Before it the
-- decision reserves its place in the guard of the requester's partition (reserve_decision), after it the acceptance
-- there delivers it. The same envelope may come again after an outage between the steps, and gets the same answer.
--
-- Uses  lib/session_records, lib/time
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

--- bind_claim
-- Binds an Idempotency-Key to the body that it was first used with, in the partition of its digest, before the acceptance in
-- the target's. Requests of one body have one target, and so meet in the claim that acceptance keeps; those of another body
-- may have another target, and are told from them here. It may be done again, and then lasts longer.
--
-- Uses  lib/time
-- KEYS  1 window, 2 idempotency body
-- ARGV  1 deadline in ms, 2 window id, 3 body digest, 4 ms a claim is kept, 5 1 while Redis is short of memory, else 0
-- Returns {'late', now}, {'window'} when the window is another one or none, {'bound'}, {'reused'} when the key is bound to another
--   body, or {'over_capacity'}: short of memory, and the key is new
local window_key, body_key = KEYS[1], KEYS[2]
local deadline, window_id, body, claim_kept, is_short = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end

local bound = redis.call('GET', body_key)
if bound and bound ~= body then return { 'reused' } end
if not bound and is_short == '1' then return { 'over_capacity' } end
-- A full Redis refuses SET, also where it would take no memory.
if bound then redis.call('PEXPIRE', body_key, claim_kept) else redis.call('SET', body_key, body, 'PX', claim_kept) end
return { 'bound' }

--- count_sessions
-- Counts what a newcomer's bounds are about, in a partition that is not its target's.
--
-- Uses  lib/time
-- KEYS  1 principal, 2 requester as a principal below its issuer, 3 opened by the requester, 4 opened by the principal
-- ARGV  none
-- Returns {sessions that the principal has pending here, those that the requester has, sessions that the requester opened here
-- within a minute, those that the principal opened}
local principal_key, agent_key, opened_key, principal_opened_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local now = read_time()
return {
  redis.call('ZCOUNT', principal_key, '(' .. digits(now), '+inf'),
  redis.call('ZCOUNT', agent_key, '(' .. digits(now), '+inf'),
  tonumber(redis.call('GET', opened_key) or 0),
  tonumber(redis.call('GET', principal_opened_key) or 0),
}

--- read_session
-- Reads one session whose target is known.
--
-- Uses  lib/session_records, lib/time
-- KEYS  1 session, 2 asked of the target
-- ARGV  1 session id
-- Returns {} when there is no such session, or {state, record of the session}; the state is p, a, r or e, which is expired
local session_key, asked_key = KEYS[1], KEYS[2]
local session_id = ARGV[1]

local record = redis.call('GET', session_key)
if not record then return {} end
local now = read_time()
local records = make_session_records(now)
local state = records.parse_session(record)
if state == 'p' and not records.place_of(records.read_asked(asked_key), records.name_of(session_id)) then state = 'e' end
return { state, record }
