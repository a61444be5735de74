-- Reads which journeys there are, at most 200, and those that the reader does not have, of 50 actions each at most. Who the
-- visitors are is not read.
--
-- KEYS  1 journeys, 2 journey versions
-- ARGV  1 the highest version that the reader has
-- Returns {the versions of all journeys, joined with spaces; then version and record of each journey above the reader's, as
--   flush_counters keeps them}
local journeys_key, versions_key = KEYS[1], KEYS[2]
local highest = tonumber(ARGV[1])

local versions = redis.call('HGETALL', versions_key)
local all, reply = {}, { '' }
for i = 2, #versions, 2 do
  all[#all + 1] = versions[i]
  if tonumber(versions[i]) > highest then
    reply[#reply + 1] = versions[i]
    reply[#reply + 1] = redis.call('HGET', journeys_key, versions[i - 1])
  end
end
reply[1] = table.concat(all, ' ')
return reply
