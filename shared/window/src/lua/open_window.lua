-- Opens a window in one slot when there is none, or one that started earlier, and returns the one that is open. So the control
-- slot decides, whose window is given to the partitions; and a reset between two calls is never undone, since each
-- reset opens a later one. The number of partitions is part of the window: whoever counts otherwise would look for
-- agents in other partitions than they are in.
--
-- Uses  lib/time
-- KEYS  1 window, 2 visitor salt; 2 only with the control slot
-- ARGV  1 window id, 2 started at in ms, or 0 to start now and replace none, 3 deploy id, 4 number of partitions, 5 salt
-- Returns {window id, started at, deploy id, number of partitions}, and of the control slot the salt
local window_key, salt_key = KEYS[1], KEYS[2]
local window_id, started_at, deploy_id, partitions = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local salt = ARGV[5]

local open = redis.call('HMGET', window_key, 'id', 'started_at', 'deploy_id', 'partitions')
if not open[1] or tonumber(started_at) > tonumber(open[2]) then
  if started_at == '0' then
    local now = read_time()
    started_at = digits(now)
  end
  redis.call('HSET', window_key, 'id', window_id, 'started_at', started_at, 'deploy_id', deploy_id,
    'partitions', partitions)
  open = { window_id, started_at, deploy_id, partitions }
elseif not open[4] then
  -- An older version opened it, which kept no number.
  redis.call('HSET', window_key, 'partitions', partitions)
  open[4] = partitions
end
if salt_key then
  redis.call('SET', salt_key, salt, 'NX')
  open[5] = redis.call('GET', salt_key)
end
return open
