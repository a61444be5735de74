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

-- The lines of a pod's channel, each about an agent that a connection of the pod has:
--   deliver connection epoch agent session text    `session` is - for an envelope of none
--   superseded connection epoch agent              the epoch is the newer owner's
--   probe connection epoch agent                   asks whether the connection still has the agent
--   disconnect connection epoch agent              has the connection closed, if it still has the agent
--   traced traceparent                             of the delivery before it; it comes in as the end of an envelope's text
-- A message holds one line or more. A deliver line is never made as a string of its own: Lua hashes each string that it
-- makes, from end to end, so a long text is joined to what stands around it only once, in the whole message.

-- Returns a superseded, probe or disconnect line.
local function format_line(kind, connection, epoch, agent)
  return kind .. ' ' .. connection .. ' ' .. epoch .. ' ' .. agent
end

-- Returns what stands before the text in a deliver line.
local function format_delivery(connection, epoch, agent, session_id)
  return 'deliver ' .. connection .. ' ' .. epoch .. ' ' .. agent .. ' ' .. session_id .. ' '
end

-- The record of whom an agent accepts envelopes from: an epoch, and behind it words with a space before and after each, which are
-- agents' ids, namespaces (an id's beginning, then .*), and @ with the digest of an issuer. The epoch is that under which its
-- connection had the agent when it said so: of two that say something, the higher one counts. Of an agent that accepts everyone
-- there is no record.

-- Returns the words, or '' where there is no record.
local function words_of(record)
  return record and string.match(record, '^%d+(.*)$') or ''
end

-- Returns whether the record is there and at least as new.
local function is_as_new(record, epoch)
  return record and tonumber(string.match(record, '^%d+')) >= tonumber(epoch)
end
