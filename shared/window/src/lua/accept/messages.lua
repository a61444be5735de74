-- Part of accept: plain messages, of no session and without a claim.
-- Uses  accept/counters, accept/pod_messages, accept/targets

-- Takes the messages of one minute: origin in ARGV[first], then digest, agent and text of each up to ARGV[last]. `bucket`
-- is false when the guard cannot hold them.
local function take_messages(batch, bucket, first, last)
  local targets, is_new = batch.message_targets, batch.message_is_new
  local fresh, n = 0, #targets
  for i = first + 1, last, 3 do
    n = n + 1
    if not bucket then
      targets[n] = { status = 'clock_skew' }
    elseif redis.call('SADD', bucket, ARGV[i]) == 1 then
      targets[n], is_new[n] = deliver(batch, ARGV[i + 1], '-', ARGV[i + 2]), true
      fresh = fresh + 1
    else
      targets[n] = target_of(batch, ARGV[i + 1])
    end
  end
  if fresh > 0 then count_publications(batch, fresh, ARGV[first], 'simple_send_accepted') end
end
