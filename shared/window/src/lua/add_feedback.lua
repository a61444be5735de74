-- Counts one feedback by its normalised labels; no text is passed in.
--
-- Uses  lib/deadline, lib/time
-- KEYS  1 window, 2 feedback
-- ARGV  1 deadline in ms, 2 window id, then the names of the counts to raise
-- Returns {'late', now}, {'window'} when the window is another one or none, {'ok'} otherwise
local window_key, feedback_key = KEYS[1], KEYS[2]
local deadline, window_id = ARGV[1], ARGV[2]

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
if redis.call('HGET', window_key, 'id') ~= window_id then return { 'window' } end
for i = 3, #ARGV do redis.call('HINCRBY', feedback_key, ARGV[i], 1) end
return { 'ok' }
