-- The load of bench/edge: `wrk -s load.lua <url> -- <case> <handles>`. Each request comes from a random one of a
-- million client addresses, for a random one of the first <handles> handles.
local case, handles

function init(args)
  case, handles = args[1], tonumber(args[2])
  math.randomseed(os.time())
  local headers = { ["Content-Type"] = "application/json" }
  if case == "aliases" then
    local fields = {}
    for i = 1, 100 do fields[i] = "w" .. i .. ": wallet(handle: \\\"name" .. i .. "\\\") { address balance { vault } }" end
    aliases = '{"query":"{ ' .. table.concat(fields, " ") .. ' }"}'
  end
end

local balance = '{"query":"query W($h: String!) { wallet(handle: $h) { handle socialId address balance { vault pda total } } }","variables":{"h":"name%d"}}'
local plain = '{"query":"query W($h: String!) { wallet(handle: $h) { handle socialId address } }","variables":{"h":"name%d"}}'

function request()
  local caller = math.random(0, 999999)
  local headers = { ["X-Forwarded-For"] = string.format("10.%d.%d.%d", math.floor(caller / 65536), math.floor(caller / 256) % 256, caller % 256) }
  local handle = math.random(1, handles)
  if case == "rest" then return wrk.format("GET", "/wallet/lookup?handle=name" .. handle, headers) end
  headers["Content-Type"] = "application/json"
  local body = case == "aliases" and aliases or string.format(case == "balance" and balance or plain, handle)
  return wrk.format("POST", "/graphql", headers, body)
end

function done(summary, latency)
  io.write(string.format('{"requests":%d,"seconds":%.3f,"p50":%.2f,"p99":%.2f,"errors":%d,"refused":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout, summary.errors.status))
end
