-- Part of accept: the results of the items, in their order. That of a plain message is a letter, of all others a list.

local function answer(batch, result)
  batch.results[#batch.results + 1] = result
end

-- Answers with a result that waits for the publish: only then is the target's status known. It then becomes the second
-- field of the result, and `finish` is called with it. Until then the result keeps target and `finish` as fields with
-- names, which Redis leaves out: of a table it replies with the numbered fields alone.
local function settle(batch, target, result, finish)
  result.target, result.finish = target, finish
  answer(batch, result)
end

-- Returns {'ok', now, letters, result…} with the statuses as the publish left them, and finishes what waited for them.
local function settled_results(batch)
  local LETTERS = { online = 'O', stale = 'S', offline = 'F', not_seen = 'N', clock_skew = 'c' }
  local letters = {}
  for i, target in ipairs(batch.message_targets) do
    local letter = LETTERS[target.status]
    letters[i] = batch.message_is_new[i] and letter or string.lower(letter)
  end
  local results = batch.results
  results[3] = table.concat(letters)
  for i = 4, #results do
    local result = results[i]
    if result.target then result[2] = result.target.status end
    if result.finish then result.finish(result[2]) end
  end
  return results
end
