#!/usr/bin/env bash
# The typical flow with curl: look up a handle, collect its fees, print the result.
#
#     examples/flow.sh <base URL> [handle] [mint ...]
#
# Mints name coins whose waiting fees to collect too, at most 10. Needs curl 7.84 or later, and node to parse JSON.
set -euo pipefail

fail() {
  echo "$1" >&2
  exit 1
}

(($# > 0)) || fail "The base URL is missing: examples/flow.sh <base URL> [handle] [mint ...]"
base_url=$1
handle=${2:-creator}
mints=("${@:3}")

# Sends a request and sets $status and $body. A 429 or 503 means that nothing was done: retries after the seconds
# in Retry-After, but waits at most a minute in total.
request() {
  local answer seconds waited=0
  while true; do
    status=none body=
    answer=$(curl -sS --max-time 90 -w '\n%{http_code} %header{retry-after}' "$@") || return 0
    body=${answer%$'\n'*}
    read -r status seconds <<<"${answer##*$'\n'}"
    [[ $status =~ ^(429|503)$ && $seconds =~ ^[0-9]+$ ]] && ((waited + seconds <= 60)) || return 0
    echo "HTTP $status $(field error): retrying in $seconds s"
    sleep "$seconds"
    waited=$((waited + seconds))
  done
}

# Prints a field of the response, such as balance.vault; nothing if it is missing or the response is not JSON.
field() { node -p "JSON.parse(process.argv[1]).$1 ?? ''" "$body" 2>/dev/null || true; }

look_up() {
  local mint query=(--data-urlencode "handle=$handle")
  for mint in "${mints[@]}"; do query+=(--data-urlencode "mint=$mint"); done
  request --get "$base_url/wallet/lookup" "${query[@]}"
  [[ $status == 200 ]] || fail "Could not look up $handle: HTTP $status $body"
}

# 1. Look up the handle. Keep the address for the token, and the socialId for collect.
look_up
address=$(field address)
social_id=$(field socialId)
echo "$handle: address $address, socialId $social_id"

# 2. On the launch platform, launch a token with the address as its creator. Trading fills the vault.

# 3. Look it up again at any time, to see what is in the vault.
look_up
echo "In the vault: $(field balance.vault) SOL"

# 4. Collect. Anyone may do this; the service pays the transaction fee.
list=$(printf ',"%s"' "${mints[@]}")
((${#mints[@]} > 0)) || list=
request "$base_url/collect" -H 'Content-Type: application/json' \
  -d '{"socialId":"'"$social_id"'","mints":['"${list#,}"']}'
case $status/$(field error) in
  200/)
    echo "Collected: $(field collected) SOL"
    echo "New balance: $(field newBalance) SOL"
    echo "Transaction: $(field txSignature)"
    # As many coins are collected as fit into one transaction.
    ((${#mints[@]} == 0)) || echo "Still waiting on the coins: $(field remaining) SOL"
    ;;
  */NOTHING_TO_COLLECT)
    # A normal result. `collected` may be missing.
    echo "Nothing to collect: $(field message)"
    ;;
  */INVALID_SOCIAL_ID | */INVALID_MINT | */INSUFFICIENT_FUNDS | */RATE_LIMITED)
    fail "Nothing was collected: HTTP $status $body"
    ;;
  *)
    # COLLECT_FAILED, or no response: a transaction may be in flight or have landed.
    fail "It is not known whether the fees were moved: HTTP $status $body
If a transaction is named, look it up. Collecting again is safe."
    ;;
esac
