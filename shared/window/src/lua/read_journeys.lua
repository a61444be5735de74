-- Reads which journeys there are, at most 200, and those that the reader does not have, of 50 actions each at most. Who the
-- visitors are is not read.
--
-- KEYS  1 journeys, 2 journey versions
-- ARGV  1 the highest version that the reader has
-- Returns {the versions of all journeys, joined with spaces; then version and record of each journey above the reader's, as
--   flush_counters keeps them}. A version above the reader's that has no journey is passed over.
local journeys_key, versions_key = KEYS[1], KEYS[2]
local highest = tonumber(ARGV[1])

local versions = redis.call('HGETALL', versions_key)
local all, reply = {}, { '' }
for i = 2, #versions, 2 do
  local version = versions[i]
  local is_new = tonumber(version) > highest
  local record = is_new and redis.call('HGET', journeys_key, versions[i - 1])
  if record or not is_new then all[#all + 1] = version end
  if record then
    reply[#reply + 1] = version
    reply[#reply + 1] = record
  end
end
reply[1] = table.concat(all, ' ')
return reply
