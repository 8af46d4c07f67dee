-- ARGV: 6 incarnation that enough replicas have: its time begins now.
if open == '1' and ARGV[6] == inc then
  open = '0'
  call('HSET', M, 'open', '0', 'since', int(since))
end
return reply('ok')
