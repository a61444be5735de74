-- The replay guard: a bucket of digests for each minute of ts. A decision that has reserved its place there, and is not
-- accepted yet, has the digest of its text beside its own.
-- Uses  lib/time

-- A bucket holds every envelope of its minute for as long as such a ts could pass anywhere. Returns whether it can hold
-- one now: a ts beyond that cannot be guarded. `batch` has now and guard_margin by name, and forget_at, the ms at which a
-- key is forgotten, by its name.
local function is_guardable(batch, minute, bucket)
  local forget_at = (minute + 1) * 60000 + batch.guard_margin
  batch.forget_at[bucket] = forget_at
  return batch.now < forget_at and minute * 60000 <= batch.now + batch.guard_margin
end

local function expire_keys(batch)
  for key, at in pairs(batch.forget_at) do redis.call('PEXPIREAT', key, digits(at)) end
end
