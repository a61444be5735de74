-- Part of accept: what is counted of a batch, written once at its end.

local function count(batch, name, n)
  batch.counts[name] = (batch.counts[name] or 0) + n
end

-- `gateway_counter` is that of the endpoint that takes such envelopes.
local function count_publications(batch, n, origin, gateway_counter)
  count(batch, 'published_envelopes', n)
  count(batch, origin == 'websocket' and 'websocket_accepted' or gateway_counter, n)
end

-- The first publication of a minute drops the minutes long gone.
local function write_counts(batch, counters_key, minutes_key, minutes_kept)
  for name, n in pairs(batch.counts) do redis.call('HINCRBY', counters_key, name, n) end
  local published, minute = batch.counts.published_envelopes, math.floor(batch.now / 60000)
  if not published or redis.call('HINCRBY', minutes_key, minute, published) ~= published then return end
  for _, kept in ipairs(redis.call('HKEYS', minutes_key)) do
    if tonumber(kept) <= minute - minutes_kept then redis.call('HDEL', minutes_key, kept) end
  end
end
