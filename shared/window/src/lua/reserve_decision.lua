-- Reserves the place of a session decision in the replay guard of its requester's partition, before it takes effect: its
-- digest, for which every other envelope is a duplicate from then on, and the digest of its text, by which it is known itself
-- until it is accepted.
--
-- Uses  lib/deadline, lib/guard, lib/time
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
