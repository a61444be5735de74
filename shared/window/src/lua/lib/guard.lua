-- The replay guard: a set ("bucket") of digests for each span of `ts`. A decision that has reserved its place, and is
-- not accepted yet, has the digest of its text beside its own. Callers add digests with SADD: one that is there already is a
-- repeat, and the answer is `duplicate`.
-- Uses  lib/time

-- A bucket is kept until `ends_at`, in ms: as long as a `ts` of its span could pass anywhere. Returns whether it can
-- hold an envelope now. `batch` has now, and guard_ahead: how many ms ahead `ends_at` may be.
local function fits_bucket(batch, ends_at)
  return batch.now < ends_at and ends_at <= batch.now + batch.guard_ahead
end

-- Returns whether the bucket can hold an envelope now, and notes its expiry in batch.forget_at: the ms at which a key
-- expires, by name.
local function note_bucket(batch, ends_at, bucket)
  if not fits_bucket(batch, ends_at) then return false end
  batch.forget_at[bucket] = ends_at
  return true
end

-- Sets the expiry of a bucket if it holds only the digests that this call added. Later calls find it set.
local function expire_new_bucket(bucket, added, ends_at)
  if redis.call('SCARD', bucket) == added then redis.call('PEXPIREAT', bucket, digits(ends_at)) end
end

local function expire_keys(batch)
  for key, at in pairs(batch.forget_at) do redis.call('PEXPIREAT', key, digits(at)) end
end
