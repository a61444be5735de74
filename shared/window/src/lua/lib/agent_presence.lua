-- The presence of an agent, as scripts that only read return it.
-- Uses  lib/route

-- Returns when the agent was last seen, since when its connection holds it, and the mark of its route (lib/route). Each
-- is '' if it is not known. The last two are also '' if the agent's pod missed the last publish.
local function presence_of(presence_key, online_key, route_key, agent)
  local route = redis.call('HGET', route_key, agent)
  local since, mark = '', ''
  if route and redis.call('ZSCORE', online_key, agent) then since, mark = parse_since(route) end
  return redis.call('ZSCORE', presence_key, agent) or '', since, mark
end
