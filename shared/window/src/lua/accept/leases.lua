-- Part of accept: the leases that pods have in the partition, where the window has several.

-- Returns whether a pod that a publish did not reach is gone, so that its routes go. Over several partitions it may live, and not
-- be heard for a moment, while a slot is moved or a replica takes over: it is gone when its lease is over, and others have
-- renewed theirs since (renew_lease), however late: who renews next takes away what is over.
local function is_gone(batch, pod)
  if not batch.leases then return true end
  local number, lease, gap = string.match(batch.leases, '^(%d+) (%d+) (%d+)$')
  local leases = { key = KEYS[tonumber(number)], lease = tonumber(lease), gap = tonumber(gap) }
  local newest = redis.call('ZRANGE', leases.key, -1, -1, 'WITHSCORES')[2]
  if not newest then return false end
  local renewed_at = redis.call('ZSCORE', leases.key, pod)
  return not renewed_at or batch.now - newest <= leases.gap and batch.now - renewed_at > leases.lease
end
