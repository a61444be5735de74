-- Returns the window that the control slot names, and opens none.
--
-- KEYS  1 window, 2 visitor salt
-- ARGV  none
-- Returns {} when there is none, or {window id, number, deploy id, number of partitions, state, number of the window since which
--   partitions keep their state, layout, salt}; the state is opening or open, each field '' where it is lost
local window_key, salt_key = KEYS[1], KEYS[2]

local window = redis.call('HMGET', window_key, 'id', 'number', 'deploy_id', 'partitions', 'state', 'since', 'layout')
if not window[1] then return {} end
for field = 1, 7 do window[field] = window[field] or '' end
window[8] = redis.call('GET', salt_key) or ''
return window
