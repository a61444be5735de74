-- Part of accept: published envelopes, by minute and by the counter of where they came in. A field `minute counter` is all
-- that is written of one; totals are the sum of the minutes that are kept and of what older ones left in the counters. How many
-- did not find their target online is a counter of its own: one that finds it costs no further command.

-- `gateway_counter` is that of the endpoint that takes such envelopes.
local function count_publications(batch, n, origin, gateway_counter)
  local published, counter = batch.published, origin == 'websocket' and 'websocket_accepted' or gateway_counter
  published[counter] = (published[counter] or 0) + n
end

-- To be called with the status as the publish left it.
local function count_if_not_reached(batch, status)
  if status ~= 'online' then batch.not_reached = batch.not_reached + 1 end
end

-- Moves the minutes up to `newest` into the counters.
local function fold_minutes(published_key, counters_key, newest)
  local kept = redis.call('HGETALL', published_key)
  for i = 1, #kept, 2 do
    local minute, counter = string.match(kept[i], '^(%d+) (.+)$')
    if tonumber(minute) <= newest then
      redis.call('HDEL', published_key, kept[i])
      redis.call('HINCRBY', counters_key, counter, kept[i + 1])
      redis.call('HINCRBY', counters_key, 'published_envelopes', kept[i + 1])
    end
  end
end

-- The first publication of a minute folds the minutes long gone.
local function write_published(batch, published_key, counters_key, minutes_kept)
  local minute = math.floor(batch.now / 60000)
  for counter, n in pairs(batch.published) do
    local is_first = redis.call('HINCRBY', published_key, minute .. ' ' .. counter, n) == n
    if is_first then fold_minutes(published_key, counters_key, minute - minutes_kept) end
  end
  if batch.not_reached > 0 then
    redis.call('HINCRBY', counters_key, 'published_to_offline_target', batch.not_reached)
  end
end
