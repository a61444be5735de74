-- The credentials that an agent registered with: a line `key_id token` each, the newest first.

-- Returns the newest of the lines that is of another key than a line that is none of them, or nil.
local function newest_of_another_key(lines, newest)
  local key_id = string.match(newest, '^[^ ]+')
  for line in string.gmatch(lines, '[^\n]+') do
    if string.match(line, '^[^ ]+') ~= key_id then return line end
  end
end
