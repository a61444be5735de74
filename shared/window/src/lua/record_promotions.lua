-- Notes, in the control slot, which partitions a replica took over that nobody had asked to: it may lack what was written last. Of
-- several that see one promotion, and of several promotions, the earliest time is kept: who writes first need not have heard the
-- former primary last. The next window that keeps no state begins without.
--
-- Uses  lib/time
-- KEYS  1 window
-- ARGV  1 window id; then of each place its name, the number of a partition or control for the control slot, and for how many ms
--       its former primary has been silent, or '' when it never answered the caller: the window began before it fell silent
-- Returns 'window' when the window is another one or none, 'ok' otherwise
local window_key = KEYS[1]
local window_id = ARGV[1]

local window = redis.call('HMGET', window_key, 'id', 'number', 'promoted')
if window[1] ~= window_id then return 'window' end
local now = read_time()

local places, since_of = {}, {}
local function note(place, since)
  if not since_of[place] then table.insert(places, place) end
  since_of[place] = math.min(since_of[place] or since, since)
end
for place, since in string.gmatch(window[3] or '', '(%w+)@(%d+) ') do note(place, tonumber(since)) end
for i = 2, #ARGV, 2 do
  local place, silent_for = ARGV[i], ARGV[i + 1]
  note(place, silent_for == '' and tonumber(window[2]) or now - silent_for)
end

local noted = ''
for _, place in ipairs(places) do noted = noted .. place .. '@' .. digits(since_of[place]) .. ' ' end
redis.call('HSET', window_key, 'promoted', noted)
return 'ok'
