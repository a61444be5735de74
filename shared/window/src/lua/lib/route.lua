-- The record of an agent's route: `pod connection epoch seen_at since`, times in ms. Its first three words are its owner;
-- `since` is when the owner's unbroken hold of the agent began. The record of a congested connection ends with `!`.

-- Returns the owner.
local function format_owner(pod, connection, epoch)
  return pod .. ' ' .. connection .. ' ' .. epoch
end

-- Returns the record. `mark` is `!` of a congested connection, else nothing.
local function format_route(pod, connection, epoch, seen_at, since, mark)
  return format_owner(pod, connection, epoch) .. ' ' .. seen_at .. ' ' .. since .. mark
end

-- Returns {pod, connection, epoch, seen_at, congested} by name: texts, and whether it is. `since` is left out: every
-- envelope's target is looked up by this, and `since` is asked for with registers, heartbeats and check-online only.
local function parse_route(record)
  local pod, connection, epoch, seen_at = string.match(record, '^(%S+) (%S+) (%S+) (%S+)')
  local congested = string.byte(record, -1) == 33
  return { pod = pod, connection = connection, epoch = epoch, seen_at = seen_at, congested = congested }
end

-- Returns `since` and the mark, as texts.
local function parse_since(record)
  return string.match(record, '^%S+ %S+ %S+ %S+ (%d+)(!?)$')
end

-- Returns whether the record is there and the owner's, so that what is late never touches that of a newer one. `owner` is
-- `pod connection epoch`, or `pod connection` for whatever epoch; it is compared by whole words.
local function is_owned(record, owner)
  return record and string.sub(record, 1, #owner + 1) == owner .. ' '
end

-- Removes an agent's route when it is the owner's. Returns true when removed.
local function release_route(route_key, online_key, agent, owner)
  if not is_owned(redis.call('HGET', route_key, agent), owner) then return false end
  redis.call('HDEL', route_key, agent)
  redis.call('ZREM', online_key, agent)
  return true
end
