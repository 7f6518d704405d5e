-- wrk's requests: the keys of a file in turn, an address never asked before each time. Prints one line of JSON.
local heads, bodies, sent = {}, 0, 0
local HEAD = "POST /v1/email-verifications HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

function init(args)
  local length = #body_of(0, args[2])
  tag = args[2]
  for key in io.lines(args[1]) do
    heads[#heads + 1] = HEAD .. "Authorization: Bearer " .. key .. "\r\nContent-Length: " .. length .. "\r\n\r\n"
  end
end

function body_of(n, label)
  return string.format('{"email":"%s%08d@domain%03d.example"}', label, n, n % 500)
end

function request()
  sent = sent + 1
  return heads[sent % #heads + 1] .. body_of(sent, tag)
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"answers":%d,"seconds":%.6f,"p99Ms":%.3f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(99) / 1e3, e.status,
    e.connect + e.read + e.write + e.timeout))
end
