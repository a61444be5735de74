-- The records of sessions. Agents are written without `agent://`, sessions without `ses_`. Times are in ms, a ttl in
-- minutes.
--   session    `status delivery created_at ttl requester target`, then, once decided, ` decided_at decided_by`.
--              status: p, a or r: pending, approved, rejected. delivery: the target's status at acceptance, o, s or n:
--              online, stale, not_seen. decided_by: the digest of the decision's text.
--   asked      lines about one target. First its last proof while it was online, `accepted_at source requester session`,
--              then ` within` if one principal speaks for both; or an empty line. source is g (gateway) or w (websocket).
--              Then its pending sessions, oldest first, `session created_at ttl principal requester`, the principal as a
--              digest. Decided sessions, and those that gave way to newer ones, are not in it.
--   decided    a decision that its requester has not received yet: `session status decided_at target`.
-- Uses  lib/time

-- Returns the functions for these records, in one table: each function of a script costs every call of it.
local function make_session_records(now)
  local records = {}

  -- Returns an agent's name in the records, from its id.
  function records.agent_name(id) return string.sub(id, 9) end

  -- Returns an agent's id, from its name in the records.
  function records.agent_id(name) return 'agent://' .. name end

  -- Returns a session's name in the records, from its id.
  function records.name_of(id) return string.sub(id, 5) end

  -- Returns the record of a pending session.
  function records.format_session(delivery, created_at, ttl, requester, target)
    local agents = records.agent_name(requester) .. ' ' .. records.agent_name(target)
    return table.concat({ 'p', string.sub(delivery, 1, 1), created_at, ttl, agents }, ' ')
  end

  -- Returns the record of the same session once decided.
  function records.decide(record, status, decided_at, text_digest)
    return status .. string.sub(record, 2) .. ' ' .. decided_at .. ' ' .. text_digest
  end

  -- Returns status, created_at, requester, target, decided_at and decided_by. The last two are '' if it is not decided.
  function records.parse_session(record)
    return string.match(record, '^(%S) %S (%S+) %S+ (%S+) (%S+) ?(%S*) ?(%S*)$')
  end

  -- Returns {line, name, expires_at, principal, requester} of a pending session, by name.
  function records.parse_pending(line)
    local name, created_at, ttl, principal, requester = string.match(line, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    local expires_at = created_at + ttl * 60000
    return { line = line, name = name, expires_at = expires_at, principal = principal, requester = requester }
  end

  -- Returns {proof, pending} of a target by name. Expired sessions are left out.
  function records.read_pending(key)
    local record = redis.call('GET', key) or ''
    local pending = {}
    for line in string.gmatch(record, '\n([^\n]+)') do
      local session = records.parse_pending(line)
      if session.expires_at > now then pending[#pending + 1] = session end
    end
    return { proof = string.match(record, '^[^\n]*'), pending = pending }
  end

  -- Returns the lines of the pending sessions.
  function records.lines_of(at_target)
    local lines = {}
    for place, session in ipairs(at_target.pending) do lines[place] = session.line end
    return lines
  end

  -- Returns the record and when it expires, or nothing if nothing in it counts any more. The proof counts for
  -- `proof_fresh` ms.
  function records.format_pending(at_target, proof_fresh)
    local accepted_at = string.match(at_target.proof, '^%d+')
    local proof_ends_at = accepted_at and accepted_at + proof_fresh or 0
    local ends_at = proof_ends_at
    for _, session in ipairs(at_target.pending) do ends_at = math.max(ends_at, session.expires_at) end
    if ends_at <= now then return nil end
    local lines = records.lines_of(at_target)
    table.insert(lines, 1, proof_ends_at > now and at_target.proof or '')
    return table.concat(lines, '\n'), digits(ends_at)
  end

  -- Returns the place of a session among the pending ones, or nil.
  function records.place_of(at_target, name)
    for place, session in ipairs(at_target.pending) do
      if session.name == name then return place end
    end
  end

  -- Returns the record of a decision that waits for its requester.
  function records.format_decided(name, status, decided_at, target)
    return table.concat({ name, status, decided_at, records.agent_name(target) }, ' ')
  end

  return records
end
