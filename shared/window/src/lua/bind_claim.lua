-- Binds an Idempotency-Key to the body that it was first used with, in the partition of its digest, before the acceptance in
-- the target's. Requests of one body have one target, and so meet in the claim that acceptance keeps; those of another body
-- may have another target, and are told from them here. It may be done again, and then lasts longer.
--
-- Uses  lib/deadline, lib/time
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
