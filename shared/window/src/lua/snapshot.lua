-- What reports are computed from: one read of one partition. Every part is bounded, whatever the traffic was.
--
-- Uses  lib/time
-- KEYS  1 window, 2 counters, 3 minutes, 4 proofs, 5 last online proof, 6 traffic, 7 surfaces, 8 feedback, 9 visitors;
--       6 to 9 only with partition 0
-- ARGV  none
-- Returns {now, {id, started at, deploy id}, counters, minutes, proofs, last online proof or '', traffic, surfaces,
--   feedback, visitors}; hashes as name and value in turn
local window_key, counters_key, minutes_key, proofs_key, last_proof_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local traffic_key, surfaces_key, feedback_key, visitors_key = KEYS[6], KEYS[7], KEYS[8], KEYS[9]

local now = read_time()
local window = redis.call('HMGET', window_key, 'id', 'started_at', 'deploy_id')
local snapshot = {
  digits(now),
  { window[1] or '', window[2] or '', window[3] or '' },
  redis.call('HGETALL', counters_key),
  redis.call('HGETALL', minutes_key),
  redis.call('LRANGE', proofs_key, 0, -1),
  redis.call('HGET', last_proof_key, 'proof') or '',
}
if traffic_key then
  snapshot[7] = redis.call('HGETALL', traffic_key)
  snapshot[8] = redis.call('HGETALL', surfaces_key)
  snapshot[9] = redis.call('HGETALL', feedback_key)
  snapshot[10] = redis.call('PFCOUNT', visitors_key)
end
return snapshot
