-- Counts one feedback by its normalised labels; no text is passed in.
--
-- KEYS  1 window, 2 feedback
-- ARGV  1 window id, then the names of the counts to raise
-- Returns 'window' when the window is another one or none, 'ok' otherwise
local window_key, feedback_key = KEYS[1], KEYS[2]
local window_id = ARGV[1]

if redis.call('HGET', window_key, 'id') ~= window_id then return 'window' end
for i = 2, #ARGV do redis.call('HINCRBY', feedback_key, ARGV[i], 1) end
return 'ok'
