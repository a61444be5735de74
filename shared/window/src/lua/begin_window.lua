-- Begins the opening of a window, in the control slot, unless another one has taken the last one's place: so of several that see
-- the same loss, or reset the same window, one begins the next. Its number is a time, later than those of all windows before,
-- whatever the clock says.
--
-- Uses  lib/time
-- KEYS  1 window, 2 visitor salt
-- ARGV  1 id of the last window, or '' for none, 2 the highest number that any partition knows, 3 window id, 4 deploy id,
--       5 number of partitions, 6 number of the window since which partitions keep their state, or '' for this one, which begins
--       with none, 7 a new salt, 8 layout
-- Returns 1 when the opening has begun, 0 when there is another window than the last one
local window_key, salt_key = KEYS[1], KEYS[2]
local last_id, highest, window_id, deploy_id = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local partitions, since, salt, layout = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local last = redis.call('HMGET', window_key, 'id', 'number', 'since')
if (last[1] or '') ~= last_id then return 0 end
local now = read_time()
local number = digits(math.max(now, highest + 1, (tonumber(last[2]) or 0) + 1))
local kept_since = since == '' and number or since
redis.call('HSET', window_key, 'id', window_id, 'number', number, 'deploy_id', deploy_id, 'partitions', partitions,
  'state', 'opening', 'since', kept_since, 'layout', layout)
-- What the control slot has beside the record is as old as the record: where that is from before the state that is kept, it is of
-- another state, and nobody who was reset may be known by its salt.
if last[3] == kept_since then
  redis.call('SET', salt_key, salt, 'NX')
else
  redis.call('SET', salt_key, salt)
  redis.call('HSET', window_key, 'promoted', '')
end
return 1
