-- Takes a partition into a window that is being opened, unless it is in that one or a later one already: so an opening may be done
-- by several, and again by who comes next. What the partition holds stays where it is there and was in a window that is not older
-- than the last one that began with none; else its state begins a new generation, under other names.
--
-- KEYS  1 window
-- ARGV  1 window id, 2 its number, 3 number of the window since which partitions keep their state, 4 deploy id,
--       5 number of partitions, 6 layout
-- Returns {window id, number, generation, since, deploy id, number of partitions, layout}, those that the partition has then
local window_key = KEYS[1]
local window_id, number, since, deploy_id, partitions = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local layout = ARGV[6]

local known = redis.call('HMGET', window_key, 'id', 'number', 'generation', 'since', 'deploy_id', 'partitions', 'layout')
local last = tonumber(known[2])
if last and last >= tonumber(number) then return known end
local generation = last and last >= tonumber(since) and known[3] or number
redis.call('HSET', window_key, 'id', window_id, 'number', number, 'generation', generation, 'since', since,
  'deploy_id', deploy_id, 'partitions', partitions, 'layout', layout)
return { window_id, number, generation, since, deploy_id, partitions, layout }
