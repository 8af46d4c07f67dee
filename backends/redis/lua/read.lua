-- ARGV: 6 "1" without values, 7 number of names, names, number of ranges, and for each: part of the names, lo, hi.
-- Of each range: seq of its part, where it was cut, entries.
-- Of each entry: name, version, session, time left, value; false for a value that had no room: ask for it by its name.
local room, entries, bytes = 500, 500, 1048576

local function add(out, name)
  local version, id = look(name)
  if not version or not alive(id) then return end
  local value = ''
  if ARGV[6] ~= '1' then
    value = bytes > 0 and call('HGET', id == '' and X or BX, name) or false
    if value then bytes = bytes - #value end
  end
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = name, int(version), id, left(id), value
end

local at, named, ranges = 7, {}, {}
for i = 1, ARGV[at] do add(named, ARGV[at + i]) end
room = entries - ARGV[at]
at = at + ARGV[at] + 1
for i = 1, ARGV[at] do
  local part, lo, hi = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 3
  local is = part == '' and int(seq) or call('HGET', G, part) or '0'
  if room < 2 then
    ranges[i] = {is, lo}
  else
    local free, bound, cut = page(lo, hi, math.floor(room / 2))
    local out = {is, cut}
    for _, name in ipairs(free) do add(out, name) end
    for _, name in ipairs(bound) do add(out, name) end
    room = room - #free - #bound
    ranges[i] = out
  end
end
return reply('ok', named, ranges)
