-- Ends the session; what was bound to it is not seen from then on, and removed in parts.
if call('ZSCORE', S, me) then
  call('ZADD', S, 'XX', '0', me)
  local more = bury(me, 500) == 500
  done()
  if more then return reply('more') end
end
return reply('ok')
