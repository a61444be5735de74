-- What reports are computed from that one partition counts. Every part is bounded, whatever the traffic was.
--
-- KEYS  1 window, 2 counters, 3 published, 4 proofs, 5 last online proof
-- ARGV  none
-- Returns {window id or '', counters, published, proofs, last online proof or ''}; hashes as name and value in turn
local window_key, counters_key, published_key, proofs_key, last_proof_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

return {
  redis.call('HGET', window_key, 'id') or '',
  redis.call('HGETALL', counters_key),
  redis.call('HGETALL', published_key),
  redis.call('LRANGE', proofs_key, 0, -1),
  redis.call('HGET', last_proof_key, 'proof') or '',
}
