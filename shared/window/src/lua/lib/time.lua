-- The clock of Redis, which dates everything in the window, and the deadlines of calls.

-- Returns the Unix time in ms, and in µs, both whole numbers.
local function read_time()
  local time = redis.call('TIME')
  local microseconds = time[1] * 1000000 + time[2]
  return math.floor(microseconds / 1000), microseconds
end

-- Returns a whole number as text. tostring() would write more than 14 digits with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

-- After its deadline the caller has answered `unavailable`. So the call must not take effect.

-- Returns whether a call comes after its deadline, in ms. A deadline more than a second ahead means that the clock of
-- Redis was set back: nobody knows how late the call comes.
local function is_late(now, deadline)
  return now > tonumber(deadline) or now < deadline - 1000
end
