-- The record of whom an agent accepts envelopes from: an epoch, and behind it words with a space before and after each, which are
-- agents' ids, namespaces (an id's beginning, then .*), and @ with the digest of an issuer. The epoch is that under which its
-- connection had the agent when it said so: of two that say something, the higher one counts. Of an agent that accepts everyone
-- there is no record.

-- Returns the words, or '' where there is no record.
local function words_of(record)
  return record and string.match(record, '^%d+(.*)$') or ''
end

-- Returns whether the record is there and at least as new.
local function is_as_new(record, epoch)
  return record and tonumber(string.match(record, '^%d+')) >= tonumber(epoch)
end
