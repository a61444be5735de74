-- Part of accept: the leases that pods have in the partition, where the window has several.

-- Returns whether a pod that a publish did not reach is gone, so that its routes go. Over several partitions it may live, and not
-- be heard for a moment, while a slot is moved or a replica takes over: it is gone when its lease is over, and others have
-- renewed theirs since (renew_lease).
local function is_gone(batch, pod)
  local leases = batch.leases
  if not leases then return true end
  local newest = redis.call('ZRANGE', leases.key, -1, -1, 'WITHSCORES')[2]
  if not newest or batch.now - newest > leases.gap then return false end
  local renewed_at = redis.call('ZSCORE', leases.key, pod)
  return not renewed_at or batch.now - renewed_at > leases.lease
end
