-- The record of a visitor's journey: `first_seen last_seen count stages name@at name@at …`, times in ms, oldest action first.
-- `count` is of all actions, and `stages` has a bit for each stage that any of them reached, those included that are no
-- longer kept.

-- Returns one action as it stands in the record.
local function format_action(name, at)
  return string.format('%s@%.0f', name, at)
end

-- Returns the record. `actions` are joined with spaces.
local function format_journey(first_seen, last_seen, count, stages, actions)
  return string.format('%.0f %.0f %.0f %.0f %s', first_seen, last_seen, count, stages, actions)
end

-- Returns first_seen, last_seen, count and stages as numbers, and the actions joined with spaces.
local function parse_journey(record)
  local first_seen, last_seen, count, stages, actions = string.match(record, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  return tonumber(first_seen), tonumber(last_seen), tonumber(count), tonumber(stages), actions
end

-- Returns earlier actions, which are joined, and added ones, a list, joined: the last of them, at most so many.
local function join_actions(earlier, added, most)
  local _, spaces = string.gsub(earlier, ' ', '')
  local surplus = math.max(0, spaces + 1 + #added - most)
  return string.gsub(earlier .. ' ', '%S+ ', '', surplus) .. table.concat(added, ' ')
end
