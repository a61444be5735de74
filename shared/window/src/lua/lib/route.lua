-- The record of an agent's route: `pod connection epoch seen_at since`, times in ms. Its first three words are its owner;
-- `since` is when the owner's unbroken hold of the agent began.

-- Returns the owner.
local function format_owner(pod, connection, epoch)
  return pod .. ' ' .. connection .. ' ' .. epoch
end

-- Returns the record.
local function format_route(pod, connection, epoch, seen_at, since)
  return format_owner(pod, connection, epoch) .. ' ' .. seen_at .. ' ' .. since
end

-- Returns {pod, connection, epoch, seen_at} by name, as texts. `since` is left out: every envelope's target is looked up by
-- this, and `since` is asked for with registers, heartbeats and check-online only.
local function parse_route(record)
  local pod, connection, epoch, seen_at = string.match(record, '^(%S+) (%S+) (%S+) (%S+)')
  return { pod = pod, connection = connection, epoch = epoch, seen_at = seen_at }
end

-- Returns `since`, as a text.
local function parse_since(record)
  return string.match(record, '%S+$')
end

-- Removes an agent's route when it is the owner's, so that a late release never removes that of a newer one. `owner` is
-- `pod connection epoch`, or `pod connection` for whatever epoch; it is compared by whole words. Returns true when removed.
local function release_route(route_key, online_key, agent, owner)
  local record = redis.call('HGET', route_key, agent)
  if not record or string.sub(record, 1, #owner + 1) ~= owner .. ' ' then return false end
  redis.call('HDEL', route_key, agent)
  redis.call('ZREM', online_key, agent)
  return true
end
