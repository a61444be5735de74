-- The record of a credential that an agent registered with, under the id of its key: `registered_at token`, in ms.

-- Returns the record.
local function format_credential(registered_at, token)
  return registered_at .. ' ' .. token
end

-- Returns when the agent registered with it, in ms.
local function registration_of(record)
  return tonumber(string.match(record, '^%d+'))
end
