-- Reads one session whose target is known.
--
-- Uses  lib/session_records, lib/time
-- KEYS  1 session, 2 asked of the target
-- ARGV  1 session id
-- Returns {} when there is no such session, or {state, record of the session}; the state is p, a, r or e, which is expired
local session_key, asked_key = KEYS[1], KEYS[2]
local session_id = ARGV[1]

local record = redis.call('GET', session_key)
if not record then return {} end
local now = read_time()
local records = make_session_records(now)
local state = records.parse_session(record)
if state == 'p' and not records.place_of(records.read_asked(asked_key), records.name_of(session_id)) then state = 'e' end
return { state, record }
