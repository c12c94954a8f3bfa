"""What Redis does in one step, as Lua. Every script touches keys of one slot only."""

from typing import Any

APPEND = """
local width, ids = tonumber(ARGV[1]), {}
for at = width + 2, #ARGV, width do
  local entry = {}
  for i = 0, width - 1 do
    local value = ARGV[at + i]
    if value ~= '' then
      entry[#entry + 1] = ARGV[2 + i]
      entry[#entry + 1] = value
    end
  end
  ids[#ids + 1] = redis.call('XADD', KEYS[1], '*', unpack(entry))
  if KEYS[2] then
    entry[#entry + 1] = 'stream'
    entry[#entry + 1] = KEYS[1]
    redis.call('XADD', KEYS[2], '*', unpack(entry))
  end
end
return ids
"""
"""Add entries to a stream, and to the complete log with the stream's name. KEYS: the stream, the log (if it is to be
written here). ARGV: how many fields, their names, then each entry's values; empty values are left out."""

RENEW = """
local kept = 0
for i = 3, #ARGV do
  local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if held[1] and held[1][2] == ARGV[2] then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
    kept = kept + 1
  end
end
return kept
"""
"""A heartbeat: keep the lease on entries that are still this reader's. ARGV: group, reader, entry ids. JUSTID: without
it each heartbeat would count as a delivery."""

BURY = """
if redis.call('HSETNX', KEYS[3], ARGV[3], '') == 1 then
  redis.call('HSET', KEYS[3], ARGV[3], redis.call('XADD', KEYS[2], '*', unpack(ARGV, 4)))
end
if ARGV[2] ~= '' then
  return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
end
return 0
"""
"""Make an entry a dead letter, once, and acknowledge it. KEYS: stream, stream of dead letters, its index. ARGV: group,
entry id (empty: none), key in the index, then the dead letter's fields."""

UNLOCK = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
"""Give a lock back that is still ours."""

LOCK = """
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] or not held then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0
"""
"""Take a lock that is free, or keep one that is ours. ARGV: who, for how long (ms)."""


class Scripts:
    """The scripts, for one client. Each is sent by its hash, and whole when Redis does not know it (any more)."""

    def __init__(self, client: Any) -> None:
        self.append = client.register_script(APPEND)
        self.renew = client.register_script(RENEW)
        self.bury = client.register_script(BURY)
        self.lock = client.register_script(LOCK)
        self.unlock = client.register_script(UNLOCK)
