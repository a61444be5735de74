-- Opens the window of one partition when there is none, and says which one is open. Partition 0 rules: the others are
-- given its identity and follow it.
--
-- KEYS  1 window, 2 visitor salt
-- ARGV  1 window id, 2 started at in ms, or 0 for now, 3 deploy id, 4 salt, 5 '1' to follow: another window gives way
-- Returns {window id, started at, deploy id, salt}
local window_key, salt_key = KEYS[1], KEYS[2]
local window_id, started_at, deploy_id, salt, follow = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local open = redis.call('HMGET', window_key, 'id', 'started_at', 'deploy_id')
if not open[1] or (follow == '1' and open[1] ~= window_id) then
  if started_at == '0' then
    local time = redis.call('TIME')
    started_at = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  end
  redis.call('HSET', window_key, 'id', window_id, 'started_at', started_at, 'deploy_id', deploy_id)
  open = { window_id, started_at, deploy_id }
end
redis.call('SET', salt_key, salt, 'NX')
return { open[1], open[2], open[3], redis.call('GET', salt_key) }
