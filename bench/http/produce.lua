-- One record of 256 bytes a request; keys spread over the partitions.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local value = string.rep("v", 256)
local number = 0
function request()
  number = number + 1
  return wrk.format(nil, nil, nil, '{"records":[{"key":"key-' .. number % 1000 .. '","value":"' .. value .. '"}]}')
end
