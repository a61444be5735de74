-- Deadlines of calls that take effect: after its deadline a call's sender has been told `unavailable`, and does as if nothing
-- had been done.

-- Returns whether a call comes after its deadline, in ms. No deadline lies more than a second ahead: where one seems to, the
-- clock of Redis was set back since it was named, and nobody knows how late the call comes.
local function is_late(now, deadline)
  return now > tonumber(deadline) or now < deadline - 1000
end
