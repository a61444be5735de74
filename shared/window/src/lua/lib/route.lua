-- What is kept of an agent's connection, and what its pod is told. The record of a route is `pod connection epoch
-- seen_at since`, times in ms. Its first three words are its owner. `since` is when the owner's unbroken hold of the
-- agent began. The record of a congested connection ends with `!`.

-- Returns the owner.
local function format_owner(pod, connection, epoch)
  return pod .. ' ' .. connection .. ' ' .. epoch
end

-- Returns the record. `mark` is `!` for a congested connection, else ''.
local function format_route(pod, connection, epoch, seen_at, since, mark)
  return format_owner(pod, connection, epoch) .. ' ' .. seen_at .. ' ' .. since .. mark
end

-- Returns {pod, connection, epoch, seen_at, congested} by name. `since` is not read here: this runs for each envelope's
-- target.
local function parse_route(record)
  local pod, connection, epoch, seen_at = string.match(record, '^(%S+) (%S+) (%S+) (%S+)')
  local congested = string.byte(record, -1) == 33
  return { pod = pod, connection = connection, epoch = epoch, seen_at = seen_at, congested = congested }
end

-- Returns `since` and the mark, as texts.
local function parse_since(record)
  return string.match(record, '^%S+ %S+ %S+ %S+ (%d+)(!?)$')
end

-- Returns whether the record exists and is the owner's, so that a late call changes nothing of a newer owner. `owner`
-- is `pod connection epoch`, or `pod connection` for any epoch. Whole words are compared.
local function is_owned(record, owner)
  return record and string.sub(record, 1, #owner + 1) == owner .. ' '
end

-- Removes an agent's route if it is the owner's. Returns whether it did.
local function release_route(route_key, online_key, agent, owner)
  if not is_owned(redis.call('HGET', route_key, agent), owner) then return false end
  redis.call('HDEL', route_key, agent)
  redis.call('ZREM', online_key, agent)
  return true
end

-- The lines of a pod's channel. Each is about an agent of one of the pod's connections:
--   deliver connection epoch agent session text    `session` is - for an envelope without one
--   superseded connection epoch agent              the epoch is the newer owner's
--   probe connection epoch agent                   does the connection still have the agent?
--   disconnect connection epoch agent              close the connection if it still has the agent
--   traced traceparent                             belongs to the delivery before it; comes at the end of an envelope's text
-- A message is one line or more. Lua hashes each string that it makes, over its whole length. So a deliver line is not
-- a string of its own: its long text is joined once, to the whole message.

-- Returns a superseded, probe or disconnect line.
local function format_line(kind, connection, epoch, agent)
  return kind .. ' ' .. connection .. ' ' .. epoch .. ' ' .. agent
end

-- Returns the part of a deliver line before its text.
local function format_delivery(connection, epoch, agent, session_id)
  return 'deliver ' .. connection .. ' ' .. epoch .. ' ' .. agent .. ' ' .. session_id .. ' '
end
