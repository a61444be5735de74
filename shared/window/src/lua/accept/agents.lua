-- Part of accept, and of assert_routes: whether an agent may be new, and how many agents a principal has that may bring any
-- number of them.

-- Returns why an agent is refused that nobody saw before, or nil. `agents_key` has the agents of its principal by when they
-- were last seen, or is nil where they are not limited. Of as many as there may be, the one unseen for longest makes room
-- once it is offline: it is forgotten, unless another principal has brought it since.
local function refusal_of_newcomer(batch, agents_key, most_agents)
  if batch.is_short then return 'over_capacity' end
  if not agents_key or redis.call('ZCARD', agents_key) < most_agents then return nil end
  local oldest, seen_at = unpack(redis.call('ZRANGE', agents_key, 0, 0, 'WITHSCORES'))
  local offline_at = batch.now - batch.offline_after
  if tonumber(seen_at) >= offline_at then return 'agents_per_key' end
  redis.call('ZREM', agents_key, oldest)
  if tonumber(redis.call('ZSCORE', batch.presence_key, oldest) or 0) < offline_at then
    redis.call('ZREM', batch.presence_key, oldest)
    redis.call('ZREM', batch.online_key, oldest)
    redis.call('HDEL', batch.route_key, oldest)
    redis.call('HDEL', batch.accept_from_key, oldest)
    batch.targets[oldest] = nil
  end
  return redis.call('ZCARD', agents_key) >= most_agents and 'agents_per_key' or nil
end
