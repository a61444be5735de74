-- Marks the routes of connections that read too slowly, or clears their marks, unless a newer owner has them. An agent that has caught
-- up, and for which something waits, was not told of it meanwhile: a new hold begins, and its next heartbeat tells it.
--
-- Uses  lib/route, lib/session_records, lib/time
-- KEYS  1 route, then what is asked of an agent, and what was decided of its requests, which are named by their places in KEYS
-- ARGV  agent, owner (pod and connection, and the epoch unless it is for any), mark (`!`, or nothing to clear it), and the places of the
--       agent's keys, of a route, then of the next
-- Returns how many routes were written
local route_key = KEYS[1]
local EACH = 5
local now = read_time()
local records = make_session_records(now)

local function has_waiting(asked_key, decided_key)
  return redis.call('ZCARD', decided_key) > 0 or #records.lines_of(records.read_asked(asked_key)) > 0
end

local written = 0
for i = 1, #ARGV, EACH do
  local agent, owner, mark, asked_number, decided_number = unpack(ARGV, i, i + EACH - 1)
  local record = redis.call('HGET', route_key, agent)
  if is_owned(record, owner) then
    local route, since = parse_route(record), parse_since(record)
    if mark == '' and has_waiting(KEYS[tonumber(asked_number)], KEYS[tonumber(decided_number)]) then
      since = digits(math.max(now, tonumber(route.seen_at) + 1))
    end
    redis.call('HSET', route_key, agent,
      format_route(route.pod, route.connection, route.epoch, route.seen_at, since, mark))
    written = written + 1
  end
end
return written
