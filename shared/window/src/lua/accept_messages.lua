--- accept_messages
-- Accepts a batch of plain messages for one partition, as accept does: window and replay guard, then routes and one
-- publish for each pod, then statuses and counts. Most calls carry plain messages only. Functions, keys and arguments
-- that such a call does not need cost it time: accept takes a third longer.
--
-- Uses  lib/guard, lib/time, accept/delivery, accept/plain_messages
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 counters, 6 published, 7 accept from, then guard buckets, and with several
--       partitions the pods' leases. Messages name their bucket by its place in KEYS. One name is made here: a pod's channel,
--       prefix and the route's pod.
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 stale after ms, 5 offline after ms, 6 forget after ms,
--       7 how many ms ahead a guard bucket may end, 8 minutes kept, 9 '' or, with several partitions, batch.leases of accept;
--       then the messages, those of one bucket, origin and issuer together: how many arguments follow, end of the guard bucket
--       in ms, its key, origin (websocket or gateway), digest of the senders' issuer or '', and digest, agent and text of each
-- Returns {'late', now}, {'window'} if the window is another one or none (both did nothing), or
--   {'ok', now, letters}: a letter for each message, in order, as accept returns
local window_key, presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local counters_key, published_key, accept_from_key = KEYS[5], KEYS[6], KEYS[7]
local deadline, window_id, channel_prefix = ARGV[1], ARGV[2], ARGV[3]
local stale_after, offline_after, forget_after = ARGV[4], ARGV[5], ARGV[6]
local guard_ahead, minutes_kept, leases = ARGV[7], ARGV[8], ARGV[9]

local now = read_time()
if is_late(now, deadline) then return { 'late', now } end
local found_id, some_choose = unpack(redis.call('HMGET', window_key, 'id', 'accept_from'))
if found_id ~= window_id then return { 'window' } end

local batch = {
  presence_key = presence_key, online_key = online_key, route_key = route_key, channel_prefix = channel_prefix,
  accept_from_key = accept_from_key, some_choose = some_choose,
  stale_after = tonumber(stale_after), offline_after = tonumber(offline_after), forget_after = tonumber(forget_after),
  guard_ahead = tonumber(guard_ahead), leases = leases ~= '' and leases,
  now = now, targets = {}, pod_messages = {}, published = {}, not_reached = 0, message_targets = {}, message_is_new = {},
}

local cursor = 10
while cursor <= #ARGV do
  local last = cursor + ARGV[cursor]
  local ends_at, bucket = tonumber(ARGV[cursor + 1]), KEYS[tonumber(ARGV[cursor + 2])]
  local fresh = take_plain_messages(batch, fits_bucket(batch, ends_at) and bucket, cursor + 3, last)
  if fresh > 0 then expire_new_bucket(bucket, fresh, ends_at) end
  cursor = last + 1
end

publish(batch)
local letters = letters_of(batch)
write_published(batch, published_key, counters_key, minutes_kept)
return { 'ok', now, letters }
