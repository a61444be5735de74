-- Ends the opening of a window, in the control slot, once all partitions are in it.
--
-- KEYS  1 window
-- ARGV  1 window id
-- Returns 1, or 0 when there is another window
local window_key = KEYS[1]
local window_id = ARGV[1]

if redis.call('HGET', window_key, 'id') ~= window_id then return 0 end
redis.call('HSET', window_key, 'state', 'open')
return 1
