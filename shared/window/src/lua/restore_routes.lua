--- restore_routes
-- Writes routes of one pod again, which its connections hold and Redis may have lost: in a new window, or after a
-- publish that did not reach the pod. Agents keep their epochs and the times at which they were last heard. Of two
-- connections with one agent the higher epoch has it. The routes bring their credentials, and whom their agents accept
-- envelopes from.
--
-- Uses  lib/accept_from, lib/credential_records, lib/principal_agents, lib/route, lib/time
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 clock, 6 accept from, then keys of principals' agents and of agents'
--       credentials. A route names them by their place in KEYS. One name is made here: a pod's channel, prefix and pod.
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 offline after ms, 5 forget after ms, 6 1 while Redis is short of
--       memory, else 0, 7 pod, 8 the highest epoch that it knows, or 0, then each route: agent, connection, epoch, when the agent
--       was last heard in ms, mark (lib/route), key of the principal's agents and how many it may have (both '' without a limit),
--       key of the agent's credentials, when the last of them ends in ms, and their lines (all '' without credentials), and
--       whom it accepts (words of lib/accept_from, '' for everyone, - if its connection does not know)
-- Returns {'late', now}, {'window'} if the window is another one or none (both did nothing), or {'ok', epoch…}: for
--   each route the epoch of a newer owner that has the agent, or ''
local window_key, presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock_key, accept_from_key = KEYS[5], KEYS[6]
local deadline, window_id, channel_prefix = ARGV[1], ARGV[2], ARGV[3]
local offline_after, forget_after, is_short = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local pod, highest = ARGV[7], tonumber(ARGV[8])

local now = read_time()
if is_late(now, deadline) then return { 'late', digits(now) } end
local found_id, some_choose = unpack(redis.call('HMGET', window_key, 'id', 'accept_from'))
if found_id ~= window_id then return { 'window' } end

local batch = {
  window_key = window_key, presence_key = presence_key, online_key = online_key, route_key = route_key,
  accept_from_key = accept_from_key, some_choose = some_choose,
  offline_after = offline_after, forget_after = forget_after, is_short = is_short, now = now,
  targets = {}, brought = {}, room = {}, adds = 'GT',
}

-- Writes the credentials of an agent's owner. They replace those of an owner that gave way. Else what is kept may be
-- newer, and stays.
local function restore_credentials(gave_way, credential_number, last_end, lines)
  local credential_key = KEYS[tonumber(credential_number)]
  if not credential_key or is_short then return end
  if gave_way then keep_credentials(batch, credential_key, last_end, lines)
  else keep_credentials(batch, credential_key, last_end, lines, 'NX') end
end

-- Writes whom the agent accepts, in place of what was said under an older epoch. A replica that took over may have
-- that.
local function restore_accept_from(agent, epoch, words)
  if words == '-' or words == '' and not batch.some_choose then return end
  local record = redis.call('HGET', accept_from_key, agent)
  local is_as_new = record and tonumber(string.match(record, '^%d+')) >= tonumber(epoch)
  if not is_as_new then keep_accept_from(batch, agent, epoch, words) end
end

-- Returns the epoch of a newer owner that has the agent, or ''.
local function enter(
  agent, connection, epoch, heard_at, mark, agents_number, most_agents, credential_number, last_end, lines, accept_from)
  local agents_key = KEYS[tonumber(agents_number)]
  local record = redis.call('HGET', route_key, agent)
  local owner = record and parse_route(record)
  local is_older = owner and tonumber(owner.epoch) < tonumber(epoch)
  local owns = is_owned(record, pod .. ' ' .. connection)
  if owns and not is_older then
    -- A register whose answer the pod does not have yet has said something newer.
    if owner.epoch ~= epoch then accept_from = '-' end
    -- Its pod missed a publish, so the agent is not online. The route is written again.
    if redis.call('ZSCORE', online_key, agent) then
      restore_credentials(false, credential_number, last_end, lines)
      restore_accept_from(agent, epoch, accept_from)
      return ''
    end
    epoch = owner.epoch
  elseif owner and not is_older then
    return owner.epoch
  end
  local is_known = owner or redis.call('ZSCORE', presence_key, agent)
  -- The client learns of a refusal with its next heartbeat.
  if not is_known and refusal_of_newcomer(batch, agents_key, tonumber(most_agents)) then return '' end
  if owner and not owns then
    redis.call('SPUBLISH', channel_prefix .. owner.pod, format_line('superseded', owner.connection, epoch, agent))
  end
  -- Held since later than last heard: so accept knows that the agent was not told what waits for it.
  local seen_at = digits(math.min(heard_at, now - 1))
  redis.call('HSET', route_key, agent, format_route(pod, connection, epoch, seen_at, digits(now), mark))
  redis.call('ZADD', presence_key, 'GT', seen_at, agent)
  redis.call('ZADD', online_key, seen_at, agent)
  bring_agent(batch, agents_key, seen_at, agent)
  restore_credentials(owner and not owns, credential_number, last_end, lines)
  restore_accept_from(agent, epoch, accept_from)
  return ''
end

local answer = { 'ok' }
highest = math.max(highest, redis.call('GET', clock_key) or 0)
for i = 9, #ARGV, 11 do
  answer[#answer + 1] = enter(unpack(ARGV, i, i + 10))
  highest = math.max(highest, ARGV[i + 2])
end
write_all_brought(batch)
-- If the clock was lost or set back, no epoch is given twice.
redis.call('SET', clock_key, digits(highest))
return answer
