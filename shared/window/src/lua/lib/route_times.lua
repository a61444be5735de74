-- The record of an agent's route (lib/route) where its owner is known before: nothing of it needs to be looked for.

-- Returns seen_at and `since`, as texts, of a record of that owner.
local function parse_times(record, owner)
  return string.match(record, '^(%d+) (%d+)', #owner + 2)
end

-- Returns the record of that owner, with other times and mark.
local function format_times(owner, seen_at, since, mark)
  return owner .. ' ' .. seen_at .. ' ' .. since .. mark
end
