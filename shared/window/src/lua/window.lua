--- begin_window
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

--- raise_window
-- Takes a partition into a window that is being opened, unless it is in that one or a later one already: so an opening may be done
-- by several, and again by who comes next. What the partition holds stays where it is there and was in a window that is not older
-- than the last one that began with none; else its state begins a new generation, under other names.
--
-- KEYS  1 window
-- ARGV  1 window id, 2 its number, 3 number of the window since which partitions keep their state, 4 deploy id,
--       5 number of partitions, 6 layout
-- Returns {window id, number, generation, since, deploy id, number of partitions, layout}, those that the partition has then
local window_key = KEYS[1]
local window_id, number, since, deploy_id, partitions = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local layout = ARGV[6]

local known = redis.call('HMGET', window_key, 'id', 'number', 'generation', 'since', 'deploy_id', 'partitions', 'layout')
local last = tonumber(known[2])
if last and last >= tonumber(number) then return known end
local generation = last and last >= tonumber(since) and known[3] or number
redis.call('HSET', window_key, 'id', window_id, 'number', number, 'generation', generation, 'since', since,
  'deploy_id', deploy_id, 'partitions', partitions, 'layout', layout)
return { window_id, number, generation, since, deploy_id, partitions, layout }

--- open_window
-- Ends the opening of a window, in the control slot, once all partitions are in it.
--
-- KEYS  1 window
-- ARGV  1 window id
-- Returns 1, or 0 when there is another window
local window_key = KEYS[1]
local window_id = ARGV[1]

if redis.call('HGET', window_key, 'id') ~= window_id then return 0 end
redis.call('HSET', window_key, 'state', 'open')
return 1

--- read_window
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

--- record_promotions
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
