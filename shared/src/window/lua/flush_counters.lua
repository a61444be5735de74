-- Adds what one process counted since its last flush. A flush has a number: the same one sent again after an outage is
-- not counted twice.
--
-- KEYS  1 window, 2 flushes, 3 traffic, 4 surfaces, 5 visitors
-- ARGV  1 window id, 2 process, 3 number of the flush, 4 how many traffic pairs, 5 how many surface pairs; then the
--       pairs of name and count, then the visitors
-- Returns 'window' when the window is another one or none, 'ok' otherwise
local window_key, flushes_key, traffic_key, surfaces_key, visitors_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local window_id, process, flush = ARGV[1], ARGV[2], ARGV[3]
local traffic_pairs, surface_pairs = tonumber(ARGV[4]), tonumber(ARGV[5])

if redis.call('HGET', window_key, 'id') ~= window_id then return 'window' end
if redis.call('HGET', flushes_key, process) == flush then return 'ok' end
redis.call('HSET', flushes_key, process, flush)

local cursor = 6
for _ = 1, traffic_pairs do
  redis.call('HINCRBY', traffic_key, ARGV[cursor], ARGV[cursor + 1])
  cursor = cursor + 2
end
for _ = 1, surface_pairs do
  redis.call('HINCRBY', surfaces_key, ARGV[cursor], ARGV[cursor + 1])
  cursor = cursor + 2
end
if cursor <= #ARGV then redis.call('PFADD', visitors_key, unpack(ARGV, cursor)) end
return 'ok'
