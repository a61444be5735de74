-- Plain messages: those without a session and without a claim.
-- Uses  accept/delivery

-- Takes the plain messages of one bucket: ARGV[first] is their origin, then comes their issuer, then digest, agent and text
-- of each, up to ARGV[last]. `bucket` is false if the guard cannot hold them. Returns how many of them are new to the
-- guard.
local function take_plain_messages(batch, bucket, first, last)
  local targets, is_new = batch.message_targets, batch.message_is_new
  local fresh, n = 0, #targets
  for i = first + 2, last, 3 do
    n = n + 1
    if not bucket then
      targets[n] = { status = 'clock_skew' }
    elseif batch.some_choose and is_unwanted(batch, ARGV[i + 1], sender_of(ARGV[i + 2]), ARGV[first + 1])
      and redis.call('SISMEMBER', bucket, ARGV[i]) == 0 then
      targets[n] = { status = 'not_accepted' }
    elseif redis.call('SADD', bucket, ARGV[i]) == 1 then
      targets[n], is_new[n] = deliver(batch, ARGV[i + 1], '-', ARGV[i + 2]), true
      fresh = fresh + 1
    else
      targets[n] = target_of(batch, ARGV[i + 1])
    end
  end
  if fresh > 0 then count_publications(batch, fresh, ARGV[first], 'simple_send_accepted') end
  return fresh
end

-- Returns a letter for each message, with the statuses after the publish, and counts the new ones that reached nobody.
local function letters_of(batch)
  local LETTERS = { online = 'O', stale = 'S', offline = 'F', not_seen = 'N', clock_skew = 'c', not_accepted = 'x' }
  local letters = {}
  for i, target in ipairs(batch.message_targets) do
    local letter = LETTERS[target.status]
    local is_new = batch.message_is_new[i]
    if is_new then count_if_not_reached(batch, target.status) end
    letters[i] = is_new and letter or string.lower(letter)
  end
  return table.concat(letters)
end
