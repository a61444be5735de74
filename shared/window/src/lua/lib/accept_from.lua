-- Whom an agent accepts envelopes from: an epoch, then words with a space before and after each. A word is an agent id,
-- a namespace (`agent://team.*`), or @ with the digest of an issuer. The epoch is that of the agent's connection when
-- it said so; a record with a higher epoch wins. An agent that accepts everyone has no record. `batch` has window_key,
-- accept_from_key, and some_choose: whether an agent of the partition has a record.

-- Replaces what the agent said before. '' means everyone.
local function keep_accept_from(batch, agent, epoch, words)
  if words ~= '' then
    redis.call('HSET', batch.accept_from_key, agent, epoch .. words)
    redis.call('HSET', batch.window_key, 'accept_from', 1)
    batch.some_choose = true
  elseif batch.some_choose then redis.call('HDEL', batch.accept_from_key, agent) end
end
