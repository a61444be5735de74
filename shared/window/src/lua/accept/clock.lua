-- Part of accept: the partition's clock.
-- Uses  lib/time

-- Returns a value that only ever rises, near the time of day in µs, which no burst outruns: so epochs stay in order over
-- windows.
local function tick(batch)
  local value = digits(math.max((redis.call('GET', batch.clock_key) or 0) + 1, batch.microseconds))
  redis.call('SET', batch.clock_key, value)
  return value
end
