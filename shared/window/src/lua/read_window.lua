-- Returns the window that is open, and opens none.
--
-- KEYS  1 window, 2 visitor salt
-- ARGV  none
-- Returns {} when none is open, or {window id, started at, deploy id, number of partitions, salt}
local window_key, salt_key = KEYS[1], KEYS[2]

local open = redis.call('HMGET', window_key, 'id', 'started_at', 'deploy_id', 'partitions')
local salt = redis.call('GET', salt_key)
if not open[1] or not salt then return {} end
return { open[1], open[2], open[3], open[4], salt }
