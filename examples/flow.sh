#!/usr/bin/env bash
# The typical flow with curl: look a handle up, collect its fees, show what came of it.
#
#     examples/flow.sh <base url> [handle]
#
# With SANDBOX_RPC_URL, the address of the sandbox's chain, it puts new fees into the vault first. Needs curl
# 7.84 or later, and node to read JSON.
set -euo pipefail

fail() {
  echo "$1" >&2
  exit 1
}

(($# > 0)) || fail "The base url is missing: examples/flow.sh <base url> [handle]"
base_url=$1
handle=${2:-creator}

# Makes a request; leaves the answer in $status and $body. An answer with Retry-After means that nothing was
# done: asks again after so many seconds, but waits no more than a minute in all.
request() {
  local answer seconds waited=0
  while true; do
    status=none body=
    answer=$(curl -sS --max-time 90 -w '\n%{http_code} %header{retry-after}' "$@") || return 0
    body=${answer%$'\n'*}
    read -r status seconds <<<"${answer##*$'\n'}"
    [[ $seconds =~ ^[0-9]+$ ]] && ((waited + seconds <= 60)) || return 0
    echo "HTTP $status $(field error): asking again in $seconds s"
    sleep "$seconds"
    waited=$((waited + seconds))
  done
}

# A field of the answer, such as balance.vault; nothing when it is not there, or the answer is no JSON.
field() { node -p "JSON.parse(process.argv[1]).$1 ?? ''" "$body" 2>/dev/null || true; }

look_up() {
  request --get "$base_url/wallet/lookup" --data-urlencode "handle=$handle"
  [[ $status == 200 ]] || fail "$handle was not looked up: HTTP $status $body"
}

# 1. Look the handle up. Keep the address, for the token, and the socialId, for collect.
look_up
address=$(field address)
social_id=$(field socialId)
echo "$handle: address $address, socialId $social_id"

# 2. Launch a token with the address as its creator, on the launch platform; its trading fills the vault.
#    The sandbox has no trading, but a method that does the same.
if [[ -n ${SANDBOX_RPC_URL:-} ]]; then
  request "$SANDBOX_RPC_URL" -H 'Content-Type: application/json' \
    -d '{"jsonrpc":"2.0","id":1,"method":"sandboxAddCreatorFees","params":["'"$address"'",250000000]}'
  [[ -n $(field result) ]] || fail "No fees were put into the vault: HTTP $status $body"
  echo "New fees of 0.2500 SOL were put into the vault"
fi

# 3. Look it up at any time, and read what waits in the vault.
look_up
echo "In the vault: $(field balance.vault) SOL"

# 4. Collect. Anyone may; the service pays for the transaction.
request "$base_url/collect" -H 'Content-Type: application/json' -d '{"socialId":"'"$social_id"'"}'
case $status/$(field error) in
  200/)
    echo "Collected: $(field collected) SOL"
    echo "New balance: $(field newBalance) SOL"
    echo "Transaction: $(field txSignature)"
    ;;
  */NOTHING_TO_COLLECT)
    # An answer like any other. It may lack `collected`.
    echo "Nothing to collect: $(field message)"
    ;;
  */INVALID_SOCIAL_ID | */INSUFFICIENT_FUNDS | */RATE_LIMITED)
    fail "Nothing was collected: HTTP $status $body"
    ;;
  *)
    # COLLECT_FAILED, or no answer at all: a transaction may be under way, or have landed.
    fail "It is not known whether the fees were moved: HTTP $status $body
Look the transaction up if one is named. To collect again is safe."
    ;;
esac
