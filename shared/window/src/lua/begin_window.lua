-- Begins the opening of a window, in the control slot, unless another one has taken the last one's place: so of several that see
-- the same loss, or reset the same window, one begins the next. Its number is a time, later than those of all windows before,
-- whatever the clock says.
--
-- Uses  lib/time
-- KEYS  1 window, 2 visitor salt
-- ARGV  1 id of the last window, or '' for none, 2 the highest number that any partition knows, 3 window id, 4 deploy id,
--       5 number of partitions, 6 number of the window since which partitions keep their state, or '' for this one, which begins
--       with none, 7 salt, which is new where no state is kept
-- Returns 1 when the opening has begun, 0 when there is another window than the last one
local window_key, salt_key = KEYS[1], KEYS[2]
local last_id, highest, window_id, deploy_id = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local partitions, since, salt = ARGV[5], ARGV[6], ARGV[7]

local last = redis.call('HMGET', window_key, 'id', 'number')
if (last[1] or '') ~= last_id then return 0 end
local now = read_time()
local number = digits(math.max(now, highest + 1, (tonumber(last[2]) or 0) + 1))
redis.call('HSET', window_key, 'id', window_id, 'number', number, 'deploy_id', deploy_id, 'partitions', partitions,
  'state', 'opening', 'since', since == '' and number or since)
if since == '' then
  redis.call('SET', salt_key, salt)
  redis.call('HSET', window_key, 'promoted', '')
else
  redis.call('SET', salt_key, salt, 'NX')
end
return 1
