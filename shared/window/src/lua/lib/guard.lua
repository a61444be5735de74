-- The replay guard: a bucket of digests for each span of ts. A decision that has reserved its place there, and is not
-- accepted yet, has the digest of its text beside its own.
-- Uses  lib/time

-- A bucket holds every envelope of its span for as long as such a ts could pass anywhere: until `ends_at`, in ms. Returns
-- whether it can hold one now: a ts beyond that cannot be guarded. `batch` has by name now and guard_ahead, how many ms ahead
-- such an end may lie.
local function can_guard(batch, ends_at)
  return batch.now < ends_at and ends_at <= batch.now + batch.guard_ahead
end

-- Returns whether the bucket can hold envelopes of its span, and has it forgotten at its end. `batch` has besides forget_at,
-- the ms at which a key is forgotten, by its name.
local function is_guardable(batch, ends_at, bucket)
  if not can_guard(batch, ends_at) then return false end
  batch.forget_at[bucket] = ends_at
  return true
end

-- Sets the expiry of a bucket to which a call has just added so many digests, where it holds no others: it was set with the
-- first ones.
local function expire_new_bucket(bucket, added, ends_at)
  if redis.call('SCARD', bucket) == added then redis.call('PEXPIREAT', bucket, digits(ends_at)) end
end

local function expire_keys(batch)
  for key, at in pairs(batch.forget_at) do redis.call('PEXPIREAT', key, digits(at)) end
end
