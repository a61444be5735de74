-- The replay guard: a bucket of digests for each minute of ts. A decision that has reserved its place there, and is not
-- accepted yet, has the digest of its text beside its own.
-- Uses  lib/time

-- A bucket holds every envelope of its minute for as long as such a ts could pass anywhere. Returns the ms until which, or
-- nil when it cannot hold one now: a ts beyond that cannot be guarded. `batch` has now and guard_margin by name.
local function guard_end(batch, minute)
  local ends_at = (minute + 1) * 60000 + batch.guard_margin
  if batch.now < ends_at and minute * 60000 <= batch.now + batch.guard_margin then return ends_at end
end

-- Returns whether the bucket can hold envelopes of its minute. `batch` has besides forget_at, the ms at which a key is
-- forgotten, by its name.
local function is_guardable(batch, minute, bucket)
  local ends_at = guard_end(batch, minute)
  batch.forget_at[bucket] = ends_at
  return ends_at ~= nil
end

-- Sets the expiry of a bucket to which a call has just added so many digests, where it holds no others: it was set with the
-- first ones.
local function expire_new_bucket(bucket, added, ends_at)
  if redis.call('SCARD', bucket) == added then redis.call('PEXPIREAT', bucket, digits(ends_at)) end
end

local function expire_keys(batch)
  for key, at in pairs(batch.forget_at) do redis.call('PEXPIREAT', key, digits(at)) end
end
