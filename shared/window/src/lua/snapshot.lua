-- What reports are computed from that one partition counts. Every part is bounded, whatever the traffic was.
--
-- KEYS  1 window, 2 counters, 3 published, 4 proofs, 5 last online proof, 6 proofs within one principal
-- ARGV  none
-- Returns {window id or '', counters, published, proofs, last online proof or '', proofs within one principal}; hashes as name and value in turn
local window_key, counters_key, published_key, proofs_key, last_proof_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local proofs_within_key = KEYS[6]

return {
  redis.call('HGET', window_key, 'id') or '',
  redis.call('HGETALL', counters_key),
  redis.call('HGETALL', published_key),
  redis.call('LRANGE', proofs_key, 0, -1),
  redis.call('HGET', last_proof_key, 'proof') or '',
  redis.call('LRANGE', proofs_within_key, 0, -1),
}
