-- ARGV: 6 incarnation, 7 ttl in µs, 8 "1" to sweep, 9 number of names, names, number of digests, and for each: part of the names, seq
-- that the caller has of it, lo, hi.
local why = barred()
if why == '' and ARGV[6] ~= inc then why = 'incarnation' end
if why ~= '' then return reply(why) end
ends[me] = now + ARGV[7]
call('ZADD', S, 'XX', int(ends[me]), me)
keep()

local room, more = 500, '0'
if ARGV[8] == '1' then
  for _, id in ipairs(call('ZRANGEBYSCORE', S, '-inf', '0', 'LIMIT', 0, 500)) do
    room = room - 1 - bury(id, room)
    if room <= 0 then
      more = '1'
      break
    end
  end
  done()
end

local at, states = 9, {}
for i = 1, ARGV[at] do
  local version, id = look(ARGV[at + i])
  if not version or not alive(id) then version, id = 0, '' end
  states[#states + 1] = int(version)
  states[#states + 1] = id
  states[#states + 1] = left(id)
end
at = at + ARGV[at] + 1

local digests, sessions = {}, {}
room = 500 - ARGV[9]
for i = 1, ARGV[at] do
  local part, have, lo, hi = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  at = at + 4
  local is = part == '' and int(seq) or call('HGET', G, part) or '0'
  if is == have then
    digests[i] = {'same'}
  elseif room < 2 then
    digests[i] = {is, lo}
  else
    local free, bound, cut = page(lo, hi, math.floor(room / 2))
    local out = {is, cut}
    for _, names in ipairs({free, bound}) do
      for _, name in ipairs(names) do
        local version, id = look(name)
        if alive(id) then
          out[#out + 1] = name
          out[#out + 1] = int(version)
          out[#out + 1] = id
        end
      end
    end
    room = room - #free - #bound
    digests[i] = out
  end
end
if #digests > 0 then sessions = call('ZRANGEBYSCORE', S, '(0', '+inf', 'WITHSCORES') end
return reply('ok', more, states, digests, sessions)
