#!lua
-- What every script begins with. The server's clock decides; one script runs at a time, so it is also the lock.
--
-- KEYS, all with the hash tag of the group. Those of sessions and of what is bound to them expire (see keep):
local M = KEYS[1]   -- hash: the record (format, inc, since, server, open) and counters (seq, top, order, kept)
local N = KEYS[2]   -- sorted set of the names of entries that are not bound, all with score 0: in the order of their bytes
local V = KEYS[3]   -- hash: name -> version
local X = KEYS[4]   -- hash: name -> value
local G = KEYS[5]   -- hash: first part of a name, up to its "/" -> seq of the last change below it
local S = KEYS[6]   -- sorted set: session -> its end in µs; 0 once it has ended
local I = KEYS[7]   -- hash: session -> "order superseded node"
local Y = KEYS[8]   -- sorted set, by bytes: length of node's name, ":", node's name, session
local R = KEYS[9]   -- hash: session -> numbers of its last commits
local BN = KEYS[10] -- like N, of bound entries
local BV = KEYS[11] -- hash: name -> "version session"
local BX = KEYS[12] -- hash: name -> value
local BO = KEYS[13] -- sorted set, by bytes: session, name

-- ARGV that every script has: 1 id for a new incarnation, 2 µs that an earlier server may go on, 3 "1" when a new incarnation is open
-- until the replicas confirmed it, 4 "1" when INFO may be asked, 5 session.
local call = redis.call
local me = ARGV[5]
local t = call('TIME')
local now = t[1] * 1000000 + t[2] - 0 --[[behind]]

local function int(n) return string.format('%.0f', n) end

local server = ''
if ARGV[4] == '1' then
  local info = call('INFO', 'server', 'replication')
  server = string.match(info, 'run_id:(%w+)') .. ' ' .. string.match(info, 'master_replid:(%w+)')
end

local m = call('HMGET', M, 'format', 'inc', 'since', 'server', 'open', 'seq', 'top', 'order', 'kept')
if m[1] and m[1] ~= '1' then return redis.error_reply('FORMAT ' .. m[1]) end
local inc, since, open = m[2], tonumber(m[3] or 0), m[5] or '0'
local seq, top, order, kept = tonumber(m[6] or 0), tonumber(m[7] or 0), tonumber(m[8] or 0), tonumber(m[9] or 0)

-- Another server, or the same after it was a replica, may have lost writes: a new incarnation.
if not inc or (server ~= '' and m[4] ~= server) then
  inc, since, open = ARGV[1], now + ARGV[2], ARGV[3]
  call('HSET', M, 'format', '1', 'inc', inc, 'since', int(since), 'server', server, 'open', open)
elseif open == '1' then
  since = now + ARGV[2] -- it has not begun
end

-- What has ended stays ended, also when the clock is set back.
for _, id in ipairs(call('ZRANGEBYSCORE', S, '(0', int(now))) do call('ZADD', S, 'XX', '0', id) end

local ends = {}
local function ending(id) -- 0 when it has ended
  local e = ends[id]
  if not e then
    e = tonumber(call('ZSCORE', S, id) or 0)
    ends[id] = e
  end
  return e
end

-- why the session may not renew or bind: '' when it may.
local function barred()
  if ending(me) == 0 then return 'lost' end
  local i = call('HGET', I, me)
  if not i then return 'lost' end
  if string.match(i, '^%d+ 1') then return 'superseded' end
  return ''
end

local function reply(code, ...) return {code, int(now), inc, int(since), open, ...} end

-- keep lets what belongs to sessions expire a week after it was last used.
local function keep()
  local due = now - kept > 3600000000 or now < kept
  for i = 6, 13 do
    if due then call('PEXPIRE', KEYS[i], 604800000) else call('PEXPIRE', KEYS[i], 604800000, 'NX') end
  end
  if due then call('HSET', M, 'kept', int(now)) end
end

-- look gives the version and session of what stands for a name, dead or alive; nil when there is nothing.
local function look(name)
  local v = call('HGET', V, name)
  if v then return tonumber(v), '' end
  v = call('HGET', BV, name)
  if not v then return nil end
  local version, id = string.match(v, '^(%d+) (.*)$')
  return tonumber(version), id
end

local function alive(id) return id == '' or ending(id) > 0 end

local function left(id)
  if id == '' then return '-1' end
  return int(ending(id) - now)
end

local changed = {}
local function touch(name)
  local part = string.match(name, '^[^/]*/') or ''
  if #part > 16 then part = '' end
  changed[part] = true
end

-- done writes the counters after the last change of an entry.
local function done()
  if not next(changed) then return end
  seq = seq + 1
  call('HSET', M, 'seq', int(seq), 'top', int(top))
  for part in pairs(changed) do call('HSET', G, part, int(seq)) end
end

local function remove(name, id)
  touch(name)
  if id == '' then
    call('HDEL', V, name)
    call('HDEL', X, name)
    call('ZREM', N, name)
  else
    call('HDEL', BV, name)
    call('HDEL', BX, name)
    call('ZREM', BN, name)
    call('ZREM', BO, id .. name)
  end
end

-- bury removes up to n of the entries that were bound to an ended session, and the session when none is left; it gives how
-- many it removed.
local function bury(id, n)
  local after = string.sub(id, 1, -2) .. string.char(string.byte(id, -1) + 1) -- all have one length
  local rows = call('ZRANGEBYLEX', BO, '[' .. id, '(' .. after, 'LIMIT', 0, n)
  for _, row in ipairs(rows) do remove(string.sub(row, #id + 1), id) end
  if #rows < n then
    local node = string.match(call('HGET', I, id) or '', '^%d+ %d (.*)$') or ''
    call('ZREM', S, id)
    call('HDEL', I, id)
    call('HDEL', R, id)
    call('ZREM', Y, #node .. ':' .. node .. id)
  end
  return #rows
end

-- page gives up to n names of each kind between lo and hi, and where it was cut; '' when it is the last. Below the cut it is whole:
-- an entry that changes its kind between two pages is not missed. (Lua compares strings by locale; so Redis does it.)
local function page(lo, hi, n)
  local free, cut = call('ZRANGEBYLEX', N, lo, hi, 'LIMIT', 0, n), ''
  if #free == n then
    cut = '(' .. free[n]
    hi = '[' .. free[n]
  end
  local bound = call('ZRANGEBYLEX', BN, lo, hi, 'LIMIT', 0, n)
  if #bound == n then
    cut = '(' .. bound[n]
    local stay = call('ZLEXCOUNT', N, lo, '[' .. bound[n])
    for i = #free, stay + 1, -1 do free[i] = nil end
  end
  return free, bound, cut
end
