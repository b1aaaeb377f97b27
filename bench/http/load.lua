-- For wrk: load.lua -- none|one|unique PREFIX. Prints what it measured as JSON.
local head = "POST /charge HTTP/1.1\r\nHost: localhost\r\n"
  .. "Content-Type: application/json\r\nContent-Length: %d\r\n"
local body = '{"amount":42,"note":"' .. string.rep("x", 201) .. '"}'
local prefix, same
local n = 0

-- What is the same for all requests is made once: to make it anew each time costs
-- more than to send it.
function init(args)
  local how = args[1]
  prefix = string.format(head, #body) .. "Idempotency-Key: " .. args[2]
  if how == "none" then
    same = string.format(head, #body) .. "\r\n" .. body
  elseif how == "one" then
    same = prefix .. "0\r\n\r\n" .. body
  end
end

function request()
  if same then
    return same
  end
  n = n + 1
  return prefix .. n .. "\r\n\r\n" .. body
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"us":%d,"errors":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
