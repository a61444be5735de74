-- Notes, in the control slot, which partitions a replica took over that nobody had asked to: it may lack what was written last. Of
-- several that see one promotion, and of several promotions, the first is noted. The next window that keeps no state begins without.
--
-- Uses  lib/time
-- KEYS  1 window
-- ARGV  1 window id; then of each place its name, the number of a partition or control for the control slot, and for how many ms
--       its former primary has been silent
-- Returns 'window' when the window is another one or none, 'ok' otherwise
local window_key = KEYS[1]
local window_id = ARGV[1]

if redis.call('HGET', window_key, 'id') ~= window_id then return 'window' end
local now = read_time()
local noted = redis.call('HGET', window_key, 'promoted') or ''
for i = 2, #ARGV, 2 do
  local place, silent_for = ARGV[i], ARGV[i + 1]
  local is_noted = string.find(' ' .. noted, ' ' .. place .. '@', 1, true)
  if not is_noted then noted = noted .. place .. '@' .. digits(now - silent_for) .. ' ' end
end
redis.call('HSET', window_key, 'promoted', noted)
return 'ok'
