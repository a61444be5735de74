-- The records of sessions, of which each agent named stands without the scheme of its id; times are in ms, a ttl in minutes:
--   session    `status delivery created_at ttl requester target`, and once it is decided ` decided_at decided_by`. Status is
--              p, a or r: pending, approved or rejected; delivery, the target's status at acceptance, is o, s or n: online,
--              stale or not_seen; decided_by is the digest of the decision's text
--   asked      what is asked of one agent, in lines: first its last proof, `accepted_at source requester session`, or nothing,
--              source being g or w, the gateway or a websocket; then its pending sessions, oldest first,
--              `session created_at ttl principal requester`, sessions without `ses_`, the principal as a digest. A decided
--              session is none of them, nor is one that gave way to a newer one
--   decided    a decision that waits for its requester: `session status decided_at target`, the session without `ses_`.
-- Uses  lib/time

-- Returns what reads and writes them, by name: one function, since each that a script has costs every call of it.
local function make_session_records(now)
  local records = {}

  -- Returns an agent's name in the records, from its id.
  function records.agent_name(id) return string.sub(id, 9) end

  -- Returns an agent's id, from its name in the records.
  function records.agent_id(name) return 'agent://' .. name end

  -- Returns a session's name in the records, from its id.
  function records.name_of(id) return string.sub(id, 5) end

  -- Returns the record of a session that pends, of its agents' ids.
  function records.format_session(delivery, created_at, ttl, requester, target)
    local agents = records.agent_name(requester) .. ' ' .. records.agent_name(target)
    return table.concat({ 'p', string.sub(delivery, 1, 1), created_at, ttl, agents }, ' ')
  end

  -- Returns the record of the same session, decided.
  function records.decide(record, status, decided_at, text_digest)
    return status .. string.sub(record, 2) .. ' ' .. decided_at .. ' ' .. text_digest
  end

  -- Returns status, created_at, requester, target, decided_at and decided_by; the last two are '' of one that is not decided.
  function records.parse_session(record)
    return string.match(record, '^(%S) %S (%S+) %S+ (%S+) (%S+) ?(%S*) ?(%S*)$')
  end

  -- Returns one of the pending sessions: {line, name, expires_at, principal, requester} by name.
  function records.parse_pending(line)
    local name, created_at, ttl, principal, requester = string.match(line, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    local expires_at = created_at + ttl * 60000
    return { line = line, name = name, expires_at = expires_at, principal = principal, requester = requester }
  end

  -- Returns {proof, pending} by name; pending has the sessions whose time has not run out.
  function records.read_asked(key)
    local record = redis.call('GET', key) or ''
    local pending = {}
    for line in string.gmatch(record, '\n([^\n]+)') do
      local session = records.parse_pending(line)
      if session.expires_at > now then pending[#pending + 1] = session end
    end
    return { proof = string.match(record, '^[^\n]*'), pending = pending }
  end

  -- Returns the lines of the pending sessions.
  function records.lines_of(asked)
    local lines = {}
    for place, session in ipairs(asked.pending) do lines[place] = session.line end
    return lines
  end

  -- Returns the record, and until when any of it counts; nothing when none does. The proof counts for `proof_fresh` ms.
  function records.format_asked(asked, proof_fresh)
    local accepted_at = string.match(asked.proof, '^%d+')
    local proof_ends_at = accepted_at and accepted_at + proof_fresh or 0
    local ends_at = proof_ends_at
    for _, session in ipairs(asked.pending) do ends_at = math.max(ends_at, session.expires_at) end
    if ends_at <= now then return nil end
    local lines = records.lines_of(asked)
    table.insert(lines, 1, proof_ends_at > now and asked.proof or '')
    return table.concat(lines, '\n'), digits(ends_at)
  end

  -- Returns the place of a session among those that pend, or nil.
  function records.place_of(asked, name)
    for place, session in ipairs(asked.pending) do
      if session.name == name then return place end
    end
  end

  -- Returns the record of a decision that waits for its requester.
  function records.format_decided(name, status, decided_at, target)
    return table.concat({ name, status, decided_at, records.agent_name(target) }, ' ')
  end

  return records
end
