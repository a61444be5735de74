-- Opens a new window in all partitions at once when the deploy is another one, or when told to: everything of the
-- relay's goes but the replay guard. One step, so that nothing of the old window is written after it, and so that
-- several resets of one deploy race safely. A database that holds other keys is refused and left as it is.
--
-- KEYS  1 window of partition 0, then those of the other partitions. What is deleted is found by SCAN, here alone.
-- ARGV  1 new window id, 2 deploy id, 3 '1' to reset whatever the deploy, 4 prefix of the relay's keys, 5 Lua pattern of
--       the replay guard's keys
-- Returns {'kept', window id}, {'opened', window id, keys deleted} or {'foreign', keys that are not the relay's}
local first_window_key = KEYS[1]
local window_id, deploy_id, force, prefix, guard = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local open = redis.call('HMGET', first_window_key, 'id', 'deploy_id')
if open[1] and open[2] == deploy_id and force ~= '1' then return { 'kept', open[1] } end

local doomed, foreign, cursor = {}, 0, '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    if string.sub(key, 1, #prefix) ~= prefix then foreign = foreign + 1
    elseif not string.match(key, guard) then doomed[#doomed + 1] = key end
  end
until cursor == '0'
if foreign > 0 then return { 'foreign', foreign } end

local deleted = 0
for _, key in ipairs(doomed) do deleted = deleted + redis.call('UNLINK', key) end

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
for _, window_key in ipairs(KEYS) do
  redis.call('HSET', window_key, 'id', window_id, 'started_at', now, 'deploy_id', deploy_id)
end
return { 'opened', window_id, deleted }
