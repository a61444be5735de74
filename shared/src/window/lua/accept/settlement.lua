-- Part of accept: the items in their order, then the publishes, then all that depends on what they reached.
local take_presence, take_publication
local cursor = 12
while cursor <= #ARGV do
  local last = cursor + ARGV[cursor]
  local kind, minute, bucket = ARGV[cursor + 1], tonumber(ARGV[cursor + 2]), KEYS[tonumber(ARGV[cursor + 3])]
  local is_guardable = guardable(minute, bucket)
  if kind == 'messages' then take_messages(cursor + 4, last, is_guardable and bucket)
  elseif not is_guardable then answer({ 'clock_skew' })
  elseif kind == 'register' or kind == 'heartbeat' then
    take_presence = take_presence or make_take_presence()
    take_presence(kind, bucket, unpack(ARGV, cursor + 4, last))
  else
    take_publication = take_publication or make_take_publication()
    take_publication(kind, bucket, unpack(ARGV, cursor + 4, last))
  end
  cursor = last + 1
end

-- An agent of a pod that is gone: its route goes, unless the batch gave it a newer one.
local function release(target)
  target.status = 'stale'
  local owner = owner_of(target.agent)
  if not owner or owner.identity ~= target.owner.identity then return end
  call('HDEL', route_key, target.agent)
  call('ZREM', online_key, target.agent)
end

for _, post in ipairs(posts) do
  local pieces = post.pieces
  pieces[1] = string.sub(pieces[1], #LINE_END + 1)
  if call('SPUBLISH', channel_prefix .. post.pod, table.concat(pieces)) == 0 then
    for _, target in ipairs(post.targets) do release(target) end
  end
end

local NEW = { online = 'O', stale = 'S', offline = 'F', not_seen = 'N', clock_skew = 'c' }
local REPEAT = { online = 'o', stale = 's', offline = 'f', not_seen = 'n', clock_skew = 'c' }
local letters = {}
for i, target in ipairs(message_targets) do
  letters[i] = (message_is_new[i] and NEW or REPEAT)[target.status]
end
results[3] = table.concat(letters)

for i = 4, #results do
  local result = results[i]
  if result.target then result[2] = result.target.status end
  if result.finish then result.finish(result[2]) end
end

for bucket, at in pairs(forget_at) do call('PEXPIREAT', bucket, digits(at)) end
for name, n in pairs(counts) do call('HINCRBY', counters_key, name, n) end

-- The first publication of a minute drops the minutes long gone.
local published, minute = counts.published_envelopes, math.floor(now / 60000)
local is_first = published and call('HINCRBY', minutes_key, minute, published) == published
for _, kept in ipairs(is_first and call('HKEYS', minutes_key) or {}) do
  if tonumber(kept) <= minute - minutes_kept then call('HDEL', minutes_key, kept) end
end

return results
