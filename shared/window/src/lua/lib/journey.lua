-- The record of a visitor's journey: `first_seen last_seen count stages name@at name@at …`, times in ms, oldest action
-- first. `count` counts all actions. `stages` has a bit for each stage that an action reached. Both include actions
-- that are not kept any more.

-- Returns one action as the record has it.
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

-- Returns one text of the earlier actions (a text) and the added ones (a list): the newest, at most `most` of them.
local function join_actions(earlier, added, most)
  local _, spaces = string.gsub(earlier, ' ', '')
  local surplus = math.max(0, spaces + 1 + #added - most)
  return string.gsub(earlier .. ' ', '%S+ ', '', surplus) .. table.concat(added, ' ')
end
