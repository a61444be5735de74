-- The clock of Redis, by which everything in the window is dated.

-- Returns the Unix time in ms, then in µs; both whole.
local function read_time()
  local time = redis.call('TIME')
  local microseconds = time[1] * 1000000 + time[2]
  return math.floor(microseconds / 1000), microseconds
end

-- Returns a whole number as text: tostring() would write one of more than 14 digits with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

-- Deadlines of calls that take effect: after its deadline a call's sender has been told `unavailable`, and does as if nothing
-- had been done.

-- Returns whether a call comes after its deadline, in ms. No deadline lies more than a second ahead: where one seems to, the
-- clock of Redis was set back since it was named, and nobody knows how late the call comes.
local function is_late(now, deadline)
  return now > tonumber(deadline) or now < deadline - 1000
end
