-- The process window: opened by begin_window in the control slot, raise_window in each partition, then open_window.

--- begin_window
-- Begins to open a window, in the control slot, if the last window is still the caller's. So one of several that see
-- the same loss, or reset the same window, begins the next. Its number is a time, later than that of every window
-- before.
--
-- Uses  lib/time
-- KEYS  1 window, 2 visitor salt
-- ARGV  1 id of the last window, or '' for none, 2 the highest number that any partition knows, 3 window id, 4 deploy id,
--       5 number of partitions, 6 number of the window since which partitions keep their state, or '' to begin without state,
--       7 a new salt, 8 layout
-- Returns 1 if the opening has begun, 0 if the last window is another one
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
-- If the record of the window is older than the state that is kept, the salt beside it is older as well. It is
-- replaced, so that no visitor is recognized after a reset.
if last[3] == kept_since then
  redis.call('SET', salt_key, salt, 'NX')
else
  redis.call('SET', salt_key, salt)
  redis.call('HSET', window_key, 'promoted', '')
end
return 1

--- raise_window
-- Takes a partition into a window, unless it is in this one or a later one. So several processes may open one window.
-- The partition keeps its state if its last window is not older than ARGV 3. Else its state begins a new generation:
-- other names.
--
-- KEYS  1 window
-- ARGV  1 window id, 2 its number, 3 number of the window since which partitions keep their state, 4 deploy id,
--       5 number of partitions, 6 layout
-- Returns {window id, number, generation, since, deploy id, number of partitions, layout} as the partition has them
--   now
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
-- Returns 1, or 0 if there is another window
local window_key = KEYS[1]
local window_id = ARGV[1]

if redis.call('HGET', window_key, 'id') ~= window_id then return 0 end
redis.call('HSET', window_key, 'state', 'open')
return 1

--- read_window
-- Reads the window in the control slot.
--
-- KEYS  1 window, 2 visitor salt
-- ARGV  none
-- Returns {} if there is none, or {window id, number, deploy id, number of partitions, state, number of the window
--   since which partitions keep their state, layout, salt}. The state is opening or open. A lost field is ''.
local window_key, salt_key = KEYS[1], KEYS[2]

local window = redis.call('HMGET', window_key, 'id', 'number', 'deploy_id', 'partitions', 'state', 'since', 'layout')
if not window[1] then return {} end
for field = 1, 7 do window[field] = window[field] or '' end
window[8] = redis.call('GET', salt_key) or ''
return window

--- record_promotions
-- Notes, in the control slot, which partitions a replica took over unasked: it may lack the last writes. The earliest
-- time is kept: the process that notes it first may not be the one that heard the former primary last. A window that
-- begins without state begins without notes.
--
-- Uses  lib/time
-- KEYS  1 window
-- ARGV  1 window id; then for each place its name (the number of a partition, or control for the control slot), and for how many
--       ms its former primary has been silent, or '' if it never answered the caller: then since the window began
-- Returns 'window' if the window is another one or none, else 'ok'
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
