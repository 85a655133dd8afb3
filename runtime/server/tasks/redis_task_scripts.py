"""The Lua scripts of `RedisTaskStore`, each of which is one step for all workers.

Theory of operation. ``records`` has the record of each task, and ``entries`` its brief and the parts that the other
keys are made of. They are: the tasks of a principal and of a worker, the expiries, the cancelled tasks, and the totals.
All keys begin with the one key that a script is given, and expire an hour after the last task.

A record may have megabytes, so the scripts that find several tasks return their briefs.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ADD", "BEAT", "BRIEFS", "EXPIRE", "PAGE", "REMOVE", "REPLACE", "UNFINISHED"]

_FUNCTIONS: Final = """
local function named(name) return KEYS[1] .. name end

local records, entries, expiries = named('records'), named('entries'), named('expiries')

local function keep(key, milliseconds)
  if redis.call('PTTL', key) < milliseconds then redis.call('PEXPIRE', key, milliseconds) end
end

local function increase(key, field, amount)
  if redis.call('HINCRBY', key, field, amount) == 0 then redis.call('HDEL', key, field) end
end

local function cancelled_of(sharer) return named('cancelled:' .. sharer) end

local function entry_of(task)
  local found = redis.call('HGET', entries, task)
  return found and cmsgpack.unpack(found)
end

local function link(task, entry, record)
  local own = {records, entries, expiries, named('counts'), named('bytes'), named('total'), named('unfinished')}
  redis.call('HSET', records, task, record)
  redis.call('HSET', entries, task, cmsgpack.pack(entry))
  redis.call('ZADD', expiries, entry.expires, task)
  redis.call('ZADD', named('of:' .. entry.principal), 0, entry.position)
  table.insert(own, named('of:' .. entry.principal))
  increase(named('counts'), entry.sharer, 1)
  increase(named('bytes'), entry.sharer, entry.size)
  redis.call('INCRBY', named('total'), entry.size)
  if entry.status == 'cancelled' then
    for _, key in ipairs({named('cancelled'), cancelled_of(entry.sharer)}) do
      redis.call('ZADD', key, 0, entry.position)
      table.insert(own, key)
    end
  end
  if not entry.has_ended then
    increase(named('unfinished'), entry.worker, 1)
    redis.call('SADD', named('by:' .. entry.worker), task)
    table.insert(own, named('by:' .. entry.worker))
  end
  for _, key in ipairs(own) do keep(key, entry.kept) end
end

local function unlink(task, entry)
  redis.call('HDEL', records, task)
  redis.call('HDEL', entries, task)
  redis.call('ZREM', expiries, task)
  redis.call('ZREM', named('of:' .. entry.principal), entry.position)
  increase(named('counts'), entry.sharer, -1)
  increase(named('bytes'), entry.sharer, 0 - entry.size)
  redis.call('INCRBY', named('total'), 0 - entry.size)
  redis.call('ZREM', named('cancelled'), entry.position)
  redis.call('ZREM', cancelled_of(entry.sharer), entry.position)
  if not entry.has_ended then
    increase(named('unfinished'), entry.worker, -1)
    redis.call('SREM', named('by:' .. entry.worker), task)
  end
end

local function briefs_of(tasks)
  local found = {}
  for _, task in ipairs(tasks) do
    local entry = entry_of(task)
    if entry then table.insert(found, entry.brief) end
  end
  return found
end

local function entry_from(at)
  return {
    principal = ARGV[at], sharer = ARGV[at + 1], worker = ARGV[at + 2], status = ARGV[at + 3],
    has_ended = ARGV[at + 4] == '1', size = tonumber(ARGV[at + 5]), position = ARGV[at + 6],
    expires = ARGV[at + 7], kept = tonumber(ARGV[at + 8]), brief = ARGV[at + 9]
  }
end

-- What the owner and all have, if that is too much for *more* bytes.
local function excess(sharer, more, of_owner, of_all)
  local owned = (redis.call('HGET', named('bytes'), sharer) or 0) + more
  local total = (redis.call('GET', named('total')) or 0) + more
  if more > 0 and (owned > of_owner or total > of_all) then return {'bytes', owned, total} end
end
"""

# ARGV: the id, the record, its entry, and the limits: tasks, tasks of an owner, bytes, bytes of an owner.
ADD: Final = (
    _FUNCTIONS
    + """
local task, entry = ARGV[1], entry_from(3)
if redis.call('HEXISTS', entries, task) == 1 then return {'exists'} end
local owned = tonumber(redis.call('HGET', named('counts'), entry.sharer) or 0)
local total = redis.call('ZCARD', expiries)
local dropped = nil
if owned >= tonumber(ARGV[14]) or total >= tonumber(ARGV[13]) then
  local key = named('cancelled')
  if owned >= tonumber(ARGV[14]) then key = cancelled_of(entry.sharer) end
  local oldest = redis.call('ZRANGE', key, 0, 0)[1]
  if not oldest then return {'count', owned, total} end
  dropped = string.sub(oldest, 22)
end
local over = excess(entry.sharer, entry.size, tonumber(ARGV[16]), tonumber(ARGV[15]))
if over then return over end
if dropped then unlink(dropped, entry_of(dropped)) end
link(task, entry, ARGV[2])
return {'added'}
"""
)

# ARGV: the id, the record, its entry, the limits on bytes, and the record that must be stored; empty for any.
REPLACE: Final = (
    _FUNCTIONS
    + """
local task, entry = ARGV[1], entry_from(3)
local before = entry_of(task)
if not before then return {'gone'} end
if ARGV[15] ~= '' and redis.call('HGET', records, task) ~= ARGV[15] then return {'changed'} end
local over = excess(entry.sharer, entry.size - before.size, tonumber(ARGV[14]), tonumber(ARGV[13]))
if over then return over end
unlink(task, before)
link(task, entry, ARGV[2])
return {'replaced'}
"""
)

# ARGV: the tasks.
REMOVE: Final = (
    _FUNCTIONS
    + """
for _, task in ipairs(ARGV) do
  local entry = entry_of(task)
  if entry then unlink(task, entry) end
end
"""
)

# ARGV: the tasks.
BRIEFS: Final = (
    _FUNCTIONS
    + """
return briefs_of(ARGV)
"""
)

# ARGV: the principal, the least position as of ZRANGEBYLEX, and how many.
PAGE: Final = (
    _FUNCTIONS
    + """
local tasks = {}
for _, each in ipairs(redis.call('ZRANGEBYLEX', named('of:' .. ARGV[1]), ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
  table.insert(tasks, string.sub(each, 22))
end
return briefs_of(tasks)
"""
)

# ARGV: the time.
EXPIRE: Final = (
    _FUNCTIONS
    + """
local tasks = redis.call('ZRANGEBYSCORE', expiries, '-inf', ARGV[1], 'LIMIT', 0, 1000)
local found = briefs_of(tasks)
for _, task in ipairs(tasks) do unlink(task, entry_of(task)) end
return found
"""
)

# ARGV: the worker.
UNFINISHED: Final = (
    _FUNCTIONS
    + """
return briefs_of(redis.call('SMEMBERS', named('by:' .. ARGV[1])))
"""
)

# ARGV: the worker, and for how many milliseconds the beats are kept.
BEAT: Final = (
    _FUNCTIONS
    + """
redis.call('HINCRBY', named('workers'), ARGV[1], 1)
keep(named('workers'), tonumber(ARGV[2]))
return {redis.call('HKEYS', named('unfinished')), redis.call('HGETALL', named('workers'))}
"""
)
