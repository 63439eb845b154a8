-- The load of bench/edge: `wrk -s load.lua <url> -- <case> <client> <handles> [requests a second]`. Each request has a
-- random client address, of a million, and looks up a random handle, of the first <handles>. Without a rate, a
-- connection sends its next request at once.
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds; long micros; } tributary_time; int gettimeofday(tributary_time *, void *);")
local case, handles, head, body, path

-- Header lines and bodies as @apollo/client 4.3.8 and @urql/core 6.0.3 send them from Node.
local FETCH = "content-type: application/json\r\naccept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: gzip, deflate\r\n"
local CLIENTS = {
  curl = {
    head = "user-agent: curl/7.88.1\r\naccept: */*\r\ncontent-type: application/json\r\n",
    balance = [[{"query":"query W($h: String!) { wallet(handle: $h) { handle socialId address balance { vault pda total } } }","variables":{"h":"name%d"}}]],
    plain = [[{"query":"query W($h: String!) { wallet(handle: $h) { handle socialId address } }","variables":{"h":"name%d"}}]],
  },
  -- urql sends queries as GET.
  urql = {
    head = "connection: keep-alive\r\naccept: application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed\r\n" .. FETCH,
    balance = { operation = "W", query = "query W($h: String!) {\n  wallet(handle: $h) {\n    handle\n    socialId\n    address\n    balance {\n      vault\n      pda\n      total\n      __typename\n    }\n    __typename\n  }\n}" },
    plain = { operation = "W", query = "query W($h: String!) {\n  wallet(handle: $h) {\n    handle\n    socialId\n    address\n    __typename\n  }\n}" },
  },
  apollo = {
    head = "connection: keep-alive\r\naccept: application/graphql-response+json,application/json;q=0.9\r\n" .. FETCH,
    balance = [[{"operationName":"W","variables":{"h":"name%d"},"extensions":{"clientLibrary":{"name":"@apollo/client","version":"4.3.8"}},"query":"query W($h: String!) {\n  wallet(handle: $h) {\n    handle\n    socialId\n    address\n    balance {\n      vault\n      pda\n      total\n      __typename\n    }\n    __typename\n  }\n}"}]],
    plain = [[{"operationName":"W","variables":{"h":"name%d"},"extensions":{"clientLibrary":{"name":"@apollo/client","version":"4.3.8"}},"query":"query W($h: String!) {\n  wallet(handle: $h) {\n    handle\n    socialId\n    address\n    __typename\n  }\n}"}]],
  },
}

local function encode(text)
  return (text:gsub("[^%w%-%._]", function(character) return string.format("%%%02X", character:byte()) end))
end

local time = ffi.new("tributary_time")

local function now_ms()
  ffi.C.gettimeofday(time, nil)
  return tonumber(time.seconds) * 1000 + tonumber(time.micros) / 1000
end

-- wrk calls `delay` before each request, if there is one. A late request does not move the next ones.
local function set_rate(rate)
  local next_at = now_ms()
  function delay()
    next_at = next_at + 1000 / rate
    return math.max(0, next_at - now_ms())
  end
end

function init(args)
  case, handles = args[1], tonumber(args[3])
  if args[4] then set_rate(tonumber(args[4])) end
  local client = CLIENTS[args[2]]
  math.randomseed(os.time())
  head = " HTTP/1.1\r\nhost: " .. wrk.headers["Host"] .. "\r\n" .. client.head
  body = client[case == "new" and "balance" or case]
  if type(body) == "table" then
    path = "/graphql?operationName=" .. body.operation .. "&query=" .. encode(body.query) .. "&variables=" .. encode('{"h":"name')
  end
  if case == "aliases" then
    local fields = {}
    for i = 1, 100 do fields[i] = "w" .. i .. ": wallet(handle: \\\"name" .. i .. "\\\") { address balance { vault } }" end
    body = '{"query":"{ ' .. table.concat(fields, " ") .. ' }"}'
  end
end

local sent = 0

function request()
  local caller = math.random(0, 999999)
  local forwarded = string.format("x-forwarded-for: 10.%d.%d.%d\r\n", math.floor(caller / 65536), math.floor(caller / 256) % 256, caller % 256)
  local handle = math.random(1, handles)
  if case == "rest" then return "GET /wallet/lookup?handle=name" .. handle .. head .. forwarded .. "\r\n" end
  if path then return "GET " .. path .. handle .. encode('"}') .. head .. forwarded .. "\r\n" end
  sent = sent + 1
  if case == "new" then body = CLIENTS.curl.balance:gsub("query W", "query W" .. caller .. "_" .. sent) end
  local text = string.format(body, handle)
  return "POST /graphql" .. head .. forwarded .. "content-length: " .. #text .. "\r\n\r\n" .. text
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  io.write(string.format('{"requests":%d,"seconds":%.3f,"failed":%d,"p50Ms":%.2f,"p99Ms":%.2f}\n', summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
