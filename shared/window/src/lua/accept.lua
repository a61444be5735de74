--- accept
-- Accepts a batch of verified envelopes for one partition, in order and atomically. First the window, the replay guard,
-- presence and routes; then one publish for each pod; last statuses, proofs and sessions, since a publish that reached
-- nobody changes its targets' status.
--
-- Uses  lib/guard, lib/principal_agents, lib/time, accept/batch, accept/delivery, accept/plain_messages,
--       accept/registers, accept/sessions_and_claims
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 clock, 6 counters, 7 proofs, 8 last online proof, 9 published,
--       10 accept from, 11… keys of single items, which name them by their place in KEYS.
--       Three kinds of names are made here: a pod's channel (prefix and the route's pod), and of a session that ends undecided
--       its own key and those of its principal and requester, which differ from a new session's at their ends. While a slot
--       moves, Redis refuses the call, since the new session's key does not exist yet.
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 stale after ms, 5 offline after ms, 6 forget after ms,
--       7 how many ms ahead a guard bucket may end, 8 session bounds, 9 proofs kept, 10 ms a session is kept after its end,
--       11 ms an idempotency claim is kept, 12 minutes kept, 13 circumstances; then the items
--       session bounds, separated by spaces: pending sessions at a target, those of one requester there, sessions that a
--         requester may open, in how many ms, decisions that wait for a requester, for how many ms, ms a proof is fresh
--       circumstances: 1 while Redis is short of memory, else 0. With several partitions also, separated by spaces: place of
--         the pods' leases in KEYS, ms after which a lease is over, ms without a renewal after which no lease is, and the
--         highest epoch that the caller knows, or 0
--       each item: how many arguments follow, kind, end of the guard bucket in ms, its key, and by kind
--         plain_messages       origin, digest of the senders' issuer or '', then digest, agent and text of each message
--         register, heartbeat  digest, agent, pod, connection, mark of the route (lib/route), key of its pending sessions, key of
--                              its decided sessions, key of its principal's agents and how many it may have (both '' without
--                              a limit), whom it accepts (words of lib/accept_from, '' for everyone, - if a heartbeat's connection
--                              does not know), prefix of the keys of principals, prefix of those of sessions; and with a
--                              credential: key of its credentials, when the last of them ends, and for a register its line
--         claimed_message      digest, agent, origin, text, claim
--         session_request      digest, agent, origin, text, session id, session key, key of the target's pending sessions, key of
--                              what the requester opened, key of the principal, key of what it opened, its digest, requester,
--                              ttl in minutes, pending sessions of the principal in the other partitions, sessions that the
--                              requester opened there, those that the principal opened there, how many the principal may have
--                              pending, how many it may open, key of an issuer's agent or '', how many that has pending in the
--                              other partitions, the divisor of its share, key of the proofs within one principal or '', claim
--         session_decision     digest, agent, origin, text, session id, digest of the text, key of the agent's decided
--                              sessions, decision (a or r), decided at, who decided
--       origin: websocket or gateway. claim: nothing, or key, body digest and envelope id
-- Returns {'late', now}, {'window'} if the window is another one or none (both did nothing), or {'ok', now, letters,
-- result…}
--   letters: one for each plain message. Accepted for a target that is O online, S stale, F offline, N not_seen; in lower
--   case for a duplicate; c: clock_skew; x: not_accepted_by_target. The other items have one result each:
--   {'clock_skew'}                                                  the guard cannot hold such a ts
--   {'not_registered', epoch}                                       another, live connection has the agent
--   {'unavailable'}                                                 another connection has it, and its pod does not hear
--   {'over_capacity'}                                               Redis is short of memory, and this needs new room
--   {'not_accepted_by_target'}                                      claimed_message, session_request
--   {'agents_per_key'}                                              the principal has as many agents as it may
--   {'accepted'|'duplicate', status, last seen, epoch, pending, decided, accept from}
--                                                                   register, heartbeat. The epoch is '' for a connection that
--                                                                   does not have the agent. An agent that comes online gets
--                                                                   what waits for it, and whom it accepts if its connection
--                                                                   does not know
--   {'accepted'|'duplicate', status}                                claimed_message, session_decision
--   {'accepted'|'duplicate', status, session state, accepted at}    session_request
--   {'rate_limited', limit, ms to wait}                             session_request. The limit: opened_sessions,
--                                                                   key_opened_sessions, pending_sessions,
--                                                                   agent_pending_sessions
--   {'replayed', status, accepted at, envelope id, session id}      the claim's first answer
--   {'reused'}                                                      the claim belongs to another body
--   status: online, stale, offline or not_seen. session state: p, a, r, or e for expired.
local window_key, presence_key, online_key, route_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock_key, counters_key, proofs_key, last_proof_key, published_key = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local accept_from_key = KEYS[10]
local deadline, window_id, channel_prefix = ARGV[1], ARGV[2], ARGV[3]
local stale_after, offline_after, forget_after = ARGV[4], ARGV[5], ARGV[6]
local guard_ahead, session_bounds, proofs_kept = ARGV[7], ARGV[8], ARGV[9]
local session_kept, claim_kept, minutes_kept = ARGV[10], ARGV[11], ARGV[12]
local circumstances = ARGV[13]

local now, microseconds = read_time()
local now_text = digits(now)
if is_late(now, deadline) then return { 'late', now_text } end
local found_id, some_choose = unpack(redis.call('HMGET', window_key, 'id', 'accept_from'))
if found_id ~= window_id then return { 'window' } end

-- What the files of accept/ share: keys, limits and times, and
--   targets          the targets that were looked up, by agent
--   pod_messages     by pod, and in the order in which pods were first addressed
--   counts           how much each counter rises, by name
--   published        how many envelopes were published, by counter
--   not_reached      how many of them did not find their target online
--   leases           with several partitions: place of the pods' leases in KEYS, lease and gap, as one text
--   forget_at        when guard buckets expire, in ms, by key
--   brought, room,   agents of principals (lib/principal_agents). Here `adds` is CH: a new time replaces a later one, which
--   adds             comes from a clock that was set back
--   message_targets  the target of each plain message, in order
--   message_is_new   at the same place true if the guard did not have the message
--   results          the reply. Its third field, the letters, is set at the end
--   some_choose      whether an agent of the partition has said whom it accepts envelopes from
--   records, pending_by_key, pending_changed: made when an item needs them (accept/batch)
local batch = {
  window_key = window_key, presence_key = presence_key, online_key = online_key, route_key = route_key, clock_key = clock_key,
  accept_from_key = accept_from_key, some_choose = some_choose,
  channel_prefix = channel_prefix, guard_ahead = tonumber(guard_ahead),
  stale_after = tonumber(stale_after), offline_after = tonumber(offline_after), forget_after = tonumber(forget_after),
  is_short = circumstances == '1', session_kept = session_kept,
  now = now, now_text = now_text, microseconds = microseconds,
  targets = {}, pod_messages = {}, counts = {}, published = {}, not_reached = 0, forget_at = {}, brought = {}, room = {}, adds = 'CH',
  message_targets = {}, message_is_new = {}, results = { 'ok', now_text, '' },
}

if #circumstances > 1 then
  local is_short, leases, epoch = string.match(circumstances, '^(%d) (%d+ %d+ %d+) (%d+)$')
  batch.is_short = is_short == '1'
  batch.leases = leases
  -- A replica that took over may lack the newest epochs. No epoch is given twice.
  if epoch ~= '0' and tonumber(epoch) > tonumber(redis.call('GET', clock_key) or 0) then redis.call('SET', clock_key, epoch) end
end

local take_publication
local cursor = 14
while cursor <= #ARGV do
  local last = cursor + ARGV[cursor]
  local kind, ends_at, bucket = ARGV[cursor + 1], tonumber(ARGV[cursor + 2]), KEYS[tonumber(ARGV[cursor + 3])]
  local guarded = note_bucket(batch, ends_at, bucket)
  if kind == 'plain_messages' then take_plain_messages(batch, guarded and bucket, cursor + 4, last)
  elseif not guarded then answer(batch, { 'clock_skew' })
  elseif kind == 'register' or kind == 'heartbeat' then
    take_presence(batch, kind, bucket, unpack(ARGV, cursor + 4, last))
  else
    take_publication = take_publication or make_take_publication(batch, {
      proofs_key = proofs_key, last_proof_key = last_proof_key, session_bounds = session_bounds, proofs_kept = proofs_kept,
      claim_kept = claim_kept,
    })
    take_publication(kind, bucket, unpack(ARGV, cursor + 4, last))
  end
  cursor = last + 1
end

-- This comes before all that may fail: Redis does not undo a script, and agents that are present must be counted.
write_all_brought(batch)
publish(batch)
local results = settled_results(batch)
if batch.pending_changed then write_pending(batch, string.match(session_bounds, '%d+$')) end
expire_keys(batch)
write_published(batch, published_key, counters_key, minutes_kept)
write_counts(batch, counters_key)
return results
