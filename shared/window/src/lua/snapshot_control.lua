-- What reports are computed from that is counted for the whole window. Every part is bounded, whatever the traffic was.
--
-- Uses  lib/time
-- KEYS  1 window, 2 traffic, 3 surfaces, 4 feedback, 5 visitors
-- ARGV  none
-- Returns {now, {id, started at, deploy id}, traffic, surfaces, feedback, visitors}; of the window '' each when none is open,
--   hashes as name and value in turn
local window_key, traffic_key, surfaces_key, feedback_key, visitors_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local now = read_time()
local window = redis.call('HMGET', window_key, 'id', 'started_at', 'deploy_id')
return {
  digits(now),
  { window[1] or '', window[2] or '', window[3] or '' },
  redis.call('HGETALL', traffic_key),
  redis.call('HGETALL', surfaces_key),
  redis.call('HGETALL', feedback_key),
  redis.call('PFCOUNT', visitors_key),
}
