-- Part of accept: what is counted of a batch beside published envelopes, written once at its end.

local function count(batch, name, n)
  batch.counts[name] = (batch.counts[name] or 0) + n
end

local function write_counts(batch, counters_key)
  for name, n in pairs(batch.counts) do redis.call('HINCRBY', counters_key, name, n) end
end
