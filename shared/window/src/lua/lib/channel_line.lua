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
