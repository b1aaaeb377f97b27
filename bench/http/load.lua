-- For wrk: load.lua -- none|one|unique PREFIX. Prints what it measured as JSON.
wrk.method = "POST"
wrk.body = '{"amount":42,"note":"' .. string.rep("x", 201) .. '"}'
wrk.headers["Host"] = "localhost"
wrk.headers["Content-Type"] = "application/json"

-- Only where each request has a key of its own is wrk asked to make each anew: that
-- costs more than to send it.
function init(args)
  local how, prefix = args[1], args[2]
  if how == "one" then
    wrk.headers["Idempotency-Key"] = prefix .. "0"
  elseif how == "unique" then
    wrk.headers["Idempotency-Key"] = "@"
    local head, rest = wrk.format():match("^(.-)@(.*)$")
    local n = 0
    function request()
      n = n + 1
      return head .. prefix .. n .. rest
    end
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"us":%d,"errors":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
