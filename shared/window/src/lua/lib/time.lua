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
