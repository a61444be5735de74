--- accept
-- Accepts a batch of verified envelopes for one partition, in order, in one atomic step: window, replay guard,
-- presence and routes first; then one publish a pod; only then statuses, proofs and sessions, since a publish that
-- reached nobody means that the pod is gone and its targets are stale.
--
-- Uses  lib/guard, lib/principal_agents, lib/time, accept/batch, accept/delivery, accept/messages, accept/presence,
--       accept/sessions
-- KEYS  1 window, 2 presence, 3 online, 4 route, 5 clock, 6 counters, 7 proofs, 8 last online proof,
--       9 published, 10 accept from, 11… keys of single items: guard buckets, sessions, claims, and of agents what is asked of them,
--       what was decided for them and how many sessions they opened, of principals too. An item names such a key by its place in KEYS. Not
--       passed in are a pod's channel, prefix and pod of a route; and the keys of a session that ends undecided, its own and those
--       of its principal and requester, which differ from a newcomer's at their ends. The newcomer's key is never there before:
--       while the slot is being moved Redis refuses the call for it, and the script does not end among these.
-- ARGV  1 deadline in ms, 2 window id, 3 channel prefix, 4 stale after ms, 5 offline after ms, 6 forget after ms, 7 how
--       many ms ahead the end of a guard bucket may lie, 8 session bounds (joined with spaces: most that pend at a target, of one
--       requester there, that a requester opens within the ms that follow, most decisions that wait for a requester, for how
--       many ms, and for how many ms a proof is fresh), 9 proofs kept, 10 ms a session is kept after its end, 11 ms an
--       idempotency claim is kept, 12 minutes kept, 13 1 while Redis is short of memory, else 0, and over several partitions,
--       joined with spaces: place of the pods' leases in KEYS, ms after which a lease is over, ms without a renewal after which
--       none is, and the highest epoch that the caller knows here, or 0 where it asks for none; then the items, each
--         how many arguments follow, kind, end of the guard bucket in ms, its key, and by kind
--         messages:             origin, issuer of the senders as a digest, or '', then digest, agent and text of each message; none
--                               has a session or a claim
--         register, heartbeat:  digest, agent, pod, connection, mark of the route (lib/route), key of what is asked of it, key
--                               of what was decided for it, key of the principal's agents and how many it may have,
--                               each '' where they are not limited, whom it accepts envelopes from (words of lib/accept_from),
--                               '' for everyone, or - of a heartbeat whose connection does not know, prefixes of the keys
--                               of principals and of sessions, and of an agent with a credential: key of its credentials, when the last of them ends, and of a register its line (lib/credential)
--         message:              digest, agent, origin, text, claim
--         session_request:      digest, agent, origin, text, session id, session key, key of what is asked of the target,
--                               key of how many the requester opened, key of the principal, key of how many it opened, its
--                               digest, requester, ttl in minutes, how many the principal has pending in the other
--                               partitions and the requester and the principal opened there, how many the principal may
--                               have pending and may open, of an agent of an issuer key of the agent, else '', how many the
--                               agent has pending in the other partitions, of how many parts of what is left it may have
--                               one, where both agents answer to one principal key of the proofs within one, else '', claim
--         session_decision:     digest, agent, origin, text, session id, digest of the text, key of what was decided for the agent,
--                               decision (a or r), decided at, who decided
--       origin: websocket or gateway; claim: nothing, or key, body digest and envelope id; another key in each item.
-- Returns {'late', now}, {'window'} when the window is another one or none, nothing being done of either, or
--   {'ok', now, letters, result…}.
--   letters has one letter for each of the `messages`, in order: O, S, F or N, accepted for a target that is online,
--   stale, offline or not_seen; o, s, f or n, the same of a duplicate; c, clock_skew; x, not_accepted_by_target. The other items have one result each:
--   {'clock_skew'}                                                  ts is beyond what the guard can hold
--   {'not_registered', epoch}                                       the agent has another, live connection
--   {'unavailable'}                                                 the same, and nobody hears its pod now
--   {'over_capacity'}                                               short of memory, and this needs new room
--   {'not_accepted_by_target'}                                      message, session_request
--   {'agents_per_key'}                                              the principal has as many agents as it may
--   {'accepted'|'duplicate', status, last seen, epoch, pending, decided, accept from}
--                                                                   register, heartbeat; no epoch ('') to others; of those
--                                                                   that come online what waits for them, as it is kept, and
--                                                                   whom they accept, where their connection does not know
--   {'accepted'|'duplicate', status}                                message, session_decision
--   {'accepted'|'duplicate', status, session state, accepted at}    session_request
--   {'rate_limited', limit, ms to wait}                             session_request; limit: opened_sessions,
--                                                                   key_opened_sessions, pending_sessions,
--                                                                   agent_pending_sessions
--   {'replayed', status, accepted at, envelope id, session id}      the claim's first answer
--   {'reused'}                                                      the claim belongs to another body
--   status: online, stale, offline or not_seen; session state: p, a, r or e, expired.
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

-- What the files of accept/ share: keys, limits and times, and what they gather from the items:
--   targets          the targets that were looked up, by agent
--   pod_messages     in the order in which pods were first addressed, and by pod
--   counts           how much each counter rises, by its name
--   published        how many envelopes were published, by the counter of where they came in, and
--   not_reached      how many of them did not find their target online: accept/published
--   leases           over several partitions place of the pods' leases in KEYS, lease and gap, as a text: accept/leases
--   forget_at        ms at which a key is forgotten, by its name: buckets of the guard
--   brought, room,   what is to be added to the agents of principals, how many more they may have at least, and
--   adds             how they are added: accept writes a time anew, which mends times that lie ahead, of a clock that was set back: accept/agents
--   message_targets  the target of each plain message, in order
--   message_is_new   true at the same place when the guard had no entry of the message
--   results          the reply; its third field, the letters, is filled in at the end
--   some_choose      whether any agent of the partition said whom it accepts envelopes from, in this window
-- and once an item needs them: asked, what is asked of agents, by key; asked_changed, the keys of what is to be written of it;
-- records, which reads and writes that
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
  -- A replica that took over may lack the last epochs: none is given twice.
  if epoch ~= '0' and tonumber(epoch) > tonumber(redis.call('GET', clock_key) or 0) then redis.call('SET', clock_key, epoch) end
end

local take_publication
local cursor = 14
while cursor <= #ARGV do
  local last = cursor + ARGV[cursor]
  local kind, ends_at, bucket = ARGV[cursor + 1], tonumber(ARGV[cursor + 2]), KEYS[tonumber(ARGV[cursor + 3])]
  local guarded = is_guardable(batch, ends_at, bucket)
  if kind == 'messages' then take_messages(batch, guarded and bucket, cursor + 4, last)
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

-- Before all that may fail: Redis takes nothing back, and who is present is to be counted.
write_all_brought(batch)
publish(batch)
local results = settled_results(batch)
if batch.asked_changed then write_asked(batch, string.match(session_bounds, '%d+$')) end
expire_keys(batch)
write_published(batch, published_key, counters_key, minutes_kept)
write_counts(batch, counters_key)
return results
