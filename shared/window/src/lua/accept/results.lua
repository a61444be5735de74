-- Part of accept: the results of the items, in their order. That of a plain message is a letter, of all others a list.
-- Uses  accept/messages

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
  local results = batch.results
  results[3] = letters_of(batch)
  for i = 4, #results do
    local result = results[i]
    if result.target then result[2] = result.target.status end
    if result.finish then result.finish(result[2]) end
  end
  return results
end
