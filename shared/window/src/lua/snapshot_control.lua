-- What reports are computed from that is counted for the whole window. Every part is bounded, whatever the traffic was.
--
-- Uses  lib/time
-- KEYS  1 window, 2 traffic, 3 surfaces, 4 feedback, 5 visitors
-- ARGV  none
-- Returns {now, window id or '', traffic, surfaces, feedback, visitors, what record_promotions noted}; hashes as name and value in
--   turn
local window_key, traffic_key, surfaces_key, feedback_key, visitors_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local now = read_time()
return {
  digits(now),
  redis.call('HGET', window_key, 'id') or '',
  redis.call('HGETALL', traffic_key),
  redis.call('HGETALL', surfaces_key),
  redis.call('HGETALL', feedback_key),
  redis.call('PFCOUNT', visitors_key),
  redis.call('HGET', window_key, 'promoted') or '',
}
