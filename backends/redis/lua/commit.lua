-- ARGV: 6 incarnation, 7 number of this commit, 8 prefix of channels, 9 number of transactions, and for each: grace in µs,
-- number of checks, name and version of each; number of puts, name, "1" when bound, and value of each; number of deletes, names;
-- number of addresses to wake, addresses.
-- Of each transaction: "ok" with the versions of its puts, "conflict" with those of its checks, or why else it was not applied.
local sent = call('HGET', R, me) or ' '
if string.find(sent, ' ' .. ARGV[7] .. ' ', 1, true) then return reply('repeated') end -- the client sent it twice
local why, wake, results = barred(), {}, {}
local at, ran = 9, false
local function arg()
  at = at + 1
  return ARGV[at]
end

local function put(name, bound, value)
  local old, id = look(name)
  local version = math.max(now, (old or top) + 1)
  top = math.max(top, version)
  if old and (id ~= '' or bound) then remove(name, id) end
  touch(name)
  if bound then
    call('ZADD', BN, 0, name)
    call('HSET', BV, name, int(version) .. ' ' .. me)
    call('HSET', BX, name, value)
    call('ZADD', BO, 0, me .. name)
  else
    if not old or id ~= '' then call('ZADD', N, 0, name) end
    call('HSET', V, name, int(version))
    call('HSET', X, name, value)
  end
  return int(version)
end

for i = 1, ARGV[9] do
  local grace, current, holds = tonumber(arg()), {}, true
  for c = 1, arg() do
    local name, want = arg(), arg()
    local version, id = look(name)
    if not version or not alive(id) then version = 0 end
    current[c] = int(version)
    holds = holds and current[c] == want
  end
  local puts, binds = tonumber(arg()), false
  local first = at
  for p = 1, puts do binds = binds or ARGV[first + 3 * p - 1] == '1' end
  at = at + 3 * puts
  local deletes = tonumber(arg())
  local gone = at
  at = at + deletes
  local wakes = tonumber(arg())
  local no = ''
  if why == 'lost' or (why ~= '' and binds) then
    no = why
  elseif ARGV[6] ~= inc then
    no = 'incarnation'
  elseif grace > 0 and now < since + grace then
    no = 'grace'
  elseif not holds then
    no = 'conflict'
  end
  if no == '' then
    results[i] = {'ok'}
    for d = 1, deletes do
      local version, id = look(ARGV[gone + d])
      if version then remove(ARGV[gone + d], id) end
    end
    for p = 1, puts do
      local a = first + 3 * (p - 1)
      results[i][p + 1] = put(ARGV[a + 1], ARGV[a + 2] == '1', ARGV[a + 3])
    end
    for w = 1, wakes do wake[ARGV[at + w]] = true end
    ran = true
  elseif no == 'conflict' then
    results[i] = {no}
    for c = 1, #current do results[i][c + 1] = current[c] end
  else
    results[i] = {no}
  end
  at = at + wakes
end

if ran then
  done()
  local last = {}
  for n in string.gmatch(sent, '%d+') do last[#last + 1] = n end
  while #last > 15 do table.remove(last, 1) end
  last[#last + 1] = ARGV[7]
  call('HSET', R, me, ' ' .. table.concat(last, ' ') .. ' ')
  keep()
  for address in pairs(wake) do call('PUBLISH', ARGV[8] .. address, '') end
end
return reply('ok', results)
