-- Reads the journeys, at most 200 of 50 actions each. Who the visitors are is not read.
--
-- KEYS  1 journeys
-- ARGV  none
-- Returns the journeys as flush_counters keeps them
local journeys_key = KEYS[1]

return redis.call('HVALS', journeys_key)
