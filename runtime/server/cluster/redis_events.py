"""The events of streams in Redis: Lua scripts, each of which is one step for all workers.

Theory of operation. Each stream is a Redis Stream, whose entries have the numbers of the events as ids. Beside them are
an index and totals, with which the limits are kept: how many bytes each stream and each owner has, and which stream of
an owner was used the least recently. A stream expires by itself, and the next script that adds events removes it from
the index. The index expires, too. The only clock is that of Redis.

All keys begin with the one key that a script is given, which has the hash tag of the server.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.event_store import EVENT_OVERHEAD_BYTES

if TYPE_CHECKING:
    from mcpgen.runtime.limits import EventLimits

__all__ = ["ADD_EVENTS", "EVENTS_AFTER", "REMOVE_EVENTS", "limits_as_arguments"]

_FUNCTIONS: Final = """
local prefix = KEYS[1]
local used, sizes, totals = prefix .. 'used', prefix .. 'sizes', prefix .. 'total'
local lasts, dropped = prefix .. 'lasts', prefix .. 'dropped'
local owner_bytes, owner_streams = prefix .. 'owner-bytes', prefix .. 'owner-streams'

local function log_of(stream) return prefix .. 'stream:' .. stream end

local function owner_of(stream) return string.match(stream, '^([^.]*)%.[^.]*%.[^.]*$') or '' end

local function streams_of(owner) return prefix .. 'owner:' .. owner end

local function increase(key, owner, amount)
  if tonumber(redis.call('ZINCRBY', key, amount, owner)) <= 0 then redis.call('ZREM', key, owner) end
end

local function count(stream, bytes)
  redis.call('HINCRBY', sizes, stream, bytes)
  redis.call('INCRBY', totals, bytes)
  increase(owner_bytes, owner_of(stream), bytes)
end

local function drop_stream(stream)
  if redis.call('ZREM', used, stream) == 0 then return end
  local owner = owner_of(stream)
  count(stream, 0 - (redis.call('HGET', sizes, stream) or 0))
  increase(owner_streams, owner, -1)
  redis.call('ZREM', streams_of(owner), stream)
  redis.call('DEL', log_of(stream))
  for _, key in ipairs({sizes, lasts, dropped}) do redis.call('HDEL', key, stream) end
end
"""

# ARGV: the lifetime in milliseconds, the largest number of streams, of events and of bytes, and the bytes that each
# event counts beside its content; then a name, a number and the content of each event.
ADD_EVENTS: Final = (
    _FUNCTIONS
    + """
local lifetime, max_streams, max_events = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local max_bytes, overhead = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function drop_first(stream)
  local found = redis.call('XRANGE', log_of(stream), '-', '+', 'COUNT', 1)[1]
  if not found then return false end
  redis.call('XDEL', log_of(stream), found[1])
  redis.call('HSET', dropped, stream, string.match(found[1], '^%d+'))
  count(stream, 0 - #found[2][2] - overhead)
  return true
end

local function drop_all(stream, number)
  while drop_first(stream) do end
  redis.call('HSET', dropped, stream, number)
end

local function make_room(stream)
  local richest = redis.call('ZREVRANGE', owner_bytes, 0, 0)[1]
  if not richest then return false end
  for _, each in ipairs(redis.call('ZRANGE', streams_of(richest), 0, 1)) do
    local has_dropped = drop_first(each)
    if each ~= stream and redis.call('EXISTS', log_of(each)) == 1 and redis.call('XLEN', log_of(each)) > 0 then
      return true
    end
    if each ~= stream then drop_stream(each) return true end
    if has_dropped then return true end
  end
  return false
end

local function add(stream, number, content)
  local last = redis.call('HGET', lasts, stream)
  if last and number <= tonumber(last) then return end
  local owner = owner_of(stream)
  if not last then
    if redis.call('ZCARD', used) >= max_streams then
      local most = redis.call('ZREVRANGE', owner_streams, 0, 0)[1]
      drop_stream(redis.call('ZRANGE', streams_of(most), 0, 0)[1])
    end
    redis.call('ZINCRBY', owner_streams, 1, owner)
    redis.call('HSET', dropped, stream, number - 1)
  elseif number > last + 1 then
    drop_all(stream, number - 1)
  end
  redis.call('HSET', lasts, stream, number)
  redis.call('ZADD', used, now, stream)
  redis.call('ZADD', streams_of(owner), now, stream)
  redis.call('PEXPIRE', streams_of(owner), 2 * lifetime)
  local size = #content + overhead
  if size > max_bytes then return drop_all(stream, number) end
  if redis.call('XLEN', log_of(stream)) >= max_events then drop_first(stream) end
  while (redis.call('GET', totals) or 0) + size > max_bytes and make_room(stream) do end
  redis.call('XADD', log_of(stream), number .. '-0', 'event', content)
  redis.call('PEXPIRE', log_of(stream), lifetime)
  count(stream, size)
end

for _, each in ipairs(redis.call('ZRANGEBYSCORE', used, '-inf', now - lifetime, 'LIMIT', 0, 1000)) do
  drop_stream(each)
end
for i = 6, #ARGV, 3 do add(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]) end
for _, key in ipairs({used, sizes, totals, lasts, dropped, owner_bytes, owner_streams}) do
  redis.call('PEXPIRE', key, 2 * lifetime)
end
"""
)

# ARGV: the name of a stream, a number, and the bytes of contents after which the rest is left to the next call.
EVENTS_AFTER: Final = (
    _FUNCTIONS
    + """
local number, last = tonumber(ARGV[2]), redis.call('HGET', lasts, ARGV[1])
if not last or number > tonumber(last) or number < tonumber(redis.call('HGET', dropped, ARGV[1])) then return false end
if redis.call('EXISTS', log_of(ARGV[1])) == 0 and number < tonumber(last) then return false end
local found, size, at = {}, 0, number .. '-0'
while size < tonumber(ARGV[3]) do
  local each = redis.call('XRANGE', log_of(ARGV[1]), '(' .. at, '+', 'COUNT', 1)[1]
  if not each then break end
  table.insert(found, each)
  size, at = size + #each[2][2], each[1]
end
return found
"""
)

# ARGV: names of streams.
REMOVE_EVENTS: Final = (
    _FUNCTIONS
    + """
for _, each in ipairs(ARGV) do drop_stream(each) end
"""
)


def limits_as_arguments(limits: EventLimits) -> list[int]:
    """Return the first arguments of `ADD_EVENTS`."""
    lifetime = math.ceil(limits.lifetime_seconds * 1000)
    return [lifetime, limits.max_streams, limits.max_events_per_stream, limits.max_bytes, EVENT_OVERHEAD_BYTES]
