-- How many agents a principal may bring. Agents with keys of their own in the keys file are not limited. `batch` has by
-- the key of a principal's agents: brought, what is still to be added, as ZADD takes it; and room, how many more agents
-- fit before they must be counted again. `adds` is the option of ZADD: GT keeps a later time, CH writes any time.
-- Uses  lib/time

-- Adds the agents that the batch brought, in one command.
local function write_brought(batch, agents_key)
  local brought = batch.brought[agents_key]
  if not brought then return end
  batch.brought[agents_key] = nil
  redis.call('ZADD', agents_key, batch.adds, unpack(brought))
  redis.call('PEXPIREAT', agents_key, digits(batch.now + batch.forget_after))
end

local function write_all_brought(batch)
  for agents_key in pairs(batch.brought) do write_brought(batch, agents_key) end
end

-- Counts an agent for its principal. Without `agents_key` the principal is not limited.
local function bring_agent(batch, agents_key, seen_at, agent)
  if not agents_key then return end
  local brought = batch.brought[agents_key] or {}
  batch.brought[agents_key] = brought
  brought[#brought + 1] = seen_at
  brought[#brought + 1] = agent
  batch.room[agents_key] = (batch.room[agents_key] or 0) - 1
end

-- Returns whether the principal may have another agent. Before it counts, it writes those that the batch brought.
local function has_room(batch, agents_key, most_agents)
  if (batch.room[agents_key] or 0) > 0 then return true end
  write_brought(batch, agents_key)
  batch.room[agents_key] = most_agents - redis.call('ZCARD', agents_key)
  return batch.room[agents_key] > 0
end

-- Returns why the relay refuses an agent that it has not seen before, or nil. If the principal is full, its oldest
-- agent makes room if that is offline. The relay forgets that agent, unless another principal has brought it since.
local function refusal_of_newcomer(batch, agents_key, most_agents)
  if batch.is_short then return 'over_capacity' end
  if not agents_key or has_room(batch, agents_key, most_agents) then return nil end
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
  return not has_room(batch, agents_key, most_agents) and 'agents_per_key' or nil
end
