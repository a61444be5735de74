-- The credentials that an agent registered with: a line `key_id token` each, the newest first.

-- Returns the line of one.
local function format_credential(key_id, token)
  return key_id .. ' ' .. token
end

-- Returns the newest line that is of another key, or nil.
local function newest_of_another_key(lines, key_id)
  for line in string.gmatch(lines, '[^\n]+') do
    if string.match(line, '^[^ ]+') ~= key_id then return line end
  end
end
