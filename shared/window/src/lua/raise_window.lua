-- Takes a partition into a window that is being opened, unless it is in that one or a later one already: so an opening may be done
-- by several, and again by who comes next. What the partition holds stays where the opening keeps state and the partition is
-- there; else its state begins a new generation, under other names.
--
-- KEYS  1 window
-- ARGV  1 window id, 2 its number, 3 1 to keep the state of the partition, else 0
-- Returns {window id, number, generation}, those that the partition is in then
local window_key = KEYS[1]
local window_id, number, keeps = ARGV[1], ARGV[2], ARGV[3]

local known = redis.call('HMGET', window_key, 'id', 'number', 'generation')
if known[2] and tonumber(known[2]) >= tonumber(number) then return known end
local generation = keeps == '1' and known[3] or number
redis.call('HSET', window_key, 'id', window_id, 'number', number, 'generation', generation)
return { window_id, number, generation }
