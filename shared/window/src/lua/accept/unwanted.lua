-- Part of accept and of accept_messages: envelopes that their target does not accept from their sender.
-- Uses  lib/accept_from, accept/targets

-- Returns who sent an envelope, of its canonical text: the order of its first members is fixed, and nothing in them is escaped.
-- A colon is written as any character: no script spells a key.
local function sender_of(text)
  return string.match(text, '^{"id"."[^"]+","type"."[^"]+","from"."([^"]+)"')
end

-- Returns whether a sender is one of those that words name.
local function is_named(words, from, principal)
  if string.find(words, ' ' .. from .. ' ', 1, true) then return true end
  if string.find(words, ' @' .. principal .. ' ', 1, true) then return true end
  for prefix in string.gmatch(words, ' (%S+%.)%*') do
    if string.sub(from, 1, #prefix) == prefix then return true end
  end
  return false
end

-- Returns whether it is one. `principal` is the digest of the issuer that answers for the sender; any other is none of the words.
-- What an agent sends to itself it accepts.
local function is_unwanted(batch, agent, from, principal)
  local target = target_of(batch, agent)
  if target.accept_from == nil then
    target.accept_from = redis.call('HGET', batch.accept_from_key, agent)
    target.unwanted = {}
  end
  if not target.accept_from or from == agent then return false end
  local sender = from .. ' ' .. principal
  if target.unwanted[sender] == nil then
    target.unwanted[sender] = not is_named(words_of(target.accept_from), from, principal)
  end
  return target.unwanted[sender]
end
