-- ARGV: 6 node.
local why = barred()
if why ~= '' then return reply(why) end
local mine = tonumber(string.match(call('HGET', I, me), '^(%d+)'))
local prefix = #ARGV[6] .. ':' .. ARGV[6]
local older, longest = 0, 0
for _, row in ipairs(call('ZRANGEBYLEX', Y, '[' .. prefix, '(' .. prefix .. '\255')) do
  local id = string.sub(row, #prefix + 1)
  local number, rest = string.match(call('HGET', I, id) or '', '^(%d+) %d (.*)$')
  if number and tonumber(number) < mine and ending(id) > 0 then
    call('HSET', I, id, number .. ' 1 ' .. rest)
    older = older + 1
    longest = math.max(longest, ending(id) - now)
  end
end
return reply('ok', older, int(longest))
