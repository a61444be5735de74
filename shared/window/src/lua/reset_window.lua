-- Opens a new window in all partitions at once when the deploy or the number of partitions is another one, or when told
-- to: every key of the relay is deleted but the replay guard. One step, so that nothing of the old window is written
-- after it, and so that several resets of one deploy race safely. The new window starts after the last one, whatever the
-- clock says: by that open_window tells them apart. A database that holds other keys is refused and left as it is.
--
-- Uses  lib/time
-- KEYS  1 window of the control slot, then those of the partitions. The keys to delete are found by SCAN, in this
--       script alone.
-- ARGV  1 new window id, 2 deploy id, 3 '1' to reset whatever the deploy, 4 prefix of the relay's keys, 5 Lua pattern of
--       the replay guard's keys
-- Returns {'kept', window id}, {'opened', window id, keys deleted} or {'foreign', keys that are not the relay's}
local control_key = KEYS[1]
local window_id, deploy_id, force, prefix, guard = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local partitions = tostring(#KEYS - 1)
local open = redis.call('HMGET', control_key, 'id', 'deploy_id', 'partitions', 'started_at')
local is_same = open[1] and open[2] == deploy_id and open[3] == partitions
if is_same and force ~= '1' then return { 'kept', open[1] } end

local ours, foreign, cursor = {}, 0, '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    if string.sub(key, 1, #prefix) ~= prefix then foreign = foreign + 1
    elseif not string.match(key, guard) then ours[#ours + 1] = key end
  end
until cursor == '0'
if foreign > 0 then return { 'foreign', foreign } end

local deleted = 0
for _, key in ipairs(ours) do deleted = deleted + redis.call('UNLINK', key) end

local now = read_time()
local started_at = digits(math.max(now, (open[4] or 0) + 1))
for _, window_key in ipairs(KEYS) do
  redis.call('HSET', window_key, 'id', window_id, 'started_at', started_at, 'deploy_id', deploy_id, 'partitions', partitions)
end
return { 'opened', window_id, deleted }
