-- For wrk: load.lua -- none|one|unique PREFIX. Prints what it measured as JSON.
local head = "POST /charge HTTP/1.1\r\nHost: localhost\r\n"
  .. "Content-Type: application/json\r\nContent-Length: %d\r\n"
local body = '{"amount":42,"note":"' .. string.rep("x", 201) .. '"}'
local how, prefix, n

function init(args)
  how, prefix, n = args[1], args[2], 0
  head = string.format(head, #body)
end

function request()
  if how == "none" then
    return head .. "\r\n" .. body
  end
  n = n + (how == "unique" and 1 or 0)
  return head .. "Idempotency-Key: " .. prefix .. n .. "\r\n\r\n" .. body
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"us":%d,"errors":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
