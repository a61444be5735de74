-- Part of accept: the agents that a batch is addressed to, each looked up once.
-- Uses  lib/route

-- Returns the route of an agent by its words (lib/route), and its record; nil when no connection has the agent.
local function read_route(batch, agent)
  local record = redis.call('HGET', batch.route_key, agent)
  if not record then return nil end
  return parse_route(record), record
end

-- Returns {agent, status, last_seen, route, congested} by name: last_seen is '' when the agent was not seen, route nil unless
-- it can be delivered to. An online agent of a congested connection cannot, and is stale as a target. A publish that reaches
-- nobody makes it stale too.
local function target_of(batch, agent)
  local target = batch.targets[agent]
  if target then return target end
  local route = read_route(batch, agent)
  local last_seen = route and route.seen_at or redis.call('ZSCORE', batch.presence_key, agent) or ''
  local age = batch.now - (tonumber(last_seen) or -math.huge)
  target = { agent = agent, status = 'not_seen', last_seen = last_seen, route = nil, congested = false }
  if route and age <= batch.stale_after then
    if route.congested then target.congested, target.status = true, 'stale'
    else target.route, target.status = route, 'online' end
  elseif age <= batch.offline_after then target.status = 'stale'
  elseif age <= batch.forget_after then target.status = 'offline' end
  batch.targets[agent] = target
  return target
end
