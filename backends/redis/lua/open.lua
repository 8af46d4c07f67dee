-- ARGV: 6 ttl in µs, 7 node.
if ending(me) == 0 then -- else it is asked for again
  order = math.max(order + 1, now)
  call('HSET', M, 'order', int(order))
  call('ZADD', S, int(now + ARGV[6]), me)
  call('HSET', I, me, int(order) .. ' 0 ' .. ARGV[7])
  if ARGV[7] ~= '' then call('ZADD', Y, 0, #ARGV[7] .. ':' .. ARGV[7] .. me) end
  keep()
end
return reply('ok')
