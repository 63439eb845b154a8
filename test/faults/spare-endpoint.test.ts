import { describe, expect, it } from "vitest";
import { behindBy, refuse, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { hold, isMethod, isOwnCall, NEVER_MS } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;

let world: World;
let preferred: LyingEndpoint;
let spare: LyingEndpoint;

/** Collects with two healthy endpoints, and once more after `trouble` has begun. */
async function start(trouble: (endpoint: LyingEndpoint) => void): Promise<void> {
  // A call is slow after 2 s.
  const started = await startWithLyingEndpoints(
    2,
    { RPC_TIMEOUT_MS: "20000" },
    { waits: { resendMs: NEVER_MS } },
  );
  world = started.world;
  [preferred, spare] = started.endpoints;
  await world.gateway.start();
  expect(await collect()).toMatchObject({ success: true });
  trouble(spare);
  expect(await collect()).toMatchObject({ success: true });
}
async function collect() {
  const { chain, landedCollects } = world.sandbox;
  const { id, creatorVault } = world.account("creator");
  chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + SOL);
  const before = landedCollects().length;
  // The first look comes when the transaction is final.
  const releases = [preferred, spare].map((each) => hold(each, isMethod("getTransaction")));
  const answer = world.collect(id);
  await expect
    .poll(() => (landedCollects()[before]?.slot ?? Infinity) <= chain.slot("finalized"))
    .toBe(true);
  for (const release of releases) release();
  return (await answer).body;
}
const callsAt = ({ calls }: LyingEndpoint) =>
  calls
    .filter(isOwnCall)
    .map(({ method }) => method)
    .toSorted();
function forgetCalls(): void {
  for (const { calls } of [preferred, spare]) calls.length = 0;
}

/** What a collect asks of the preferred endpoint, as beside a healthy spare. */
const AT_PREFERRED = [
  "getLatestBlockhash",
  "getMultipleAccounts",
  "getRecentPrioritizationFees",
  "getTransaction",
  "sendTransaction",
  "simulateTransaction",
];
const AT_HEALTHY = ["getTransaction", "isBlockhashValid", "sendTransaction"];
/** A node that does not return the transaction may know its status. */
const WITH_STATUS = ["getSignatureStatuses", ...AT_HEALTHY];
const WITHOUT_BLOCKHASH = ["getTransaction", "sendTransaction"];

describe.each<[string, readonly string[], (endpoint: LyingEndpoint) => void]>([
  [
    "that is 10 s behind",
    WITH_STATUS,
    ({ lie }) => {
      lie(behindBy(50));
    },
  ],
  ["that hangs", WITHOUT_BLOCKHASH, ({ faults }) => void faults.add({ then: "hang" })],
  [
    "that answers 429",
    ["getSignatureStatuses", ...WITHOUT_BLOCKHASH],
    ({ faults }) => void faults.add({ then: { status: 429, body: "" } }),
  ],
  [
    "without history",
    WITH_STATUS,
    ({ lie }) => {
      lie({ getTransaction: () => refuse(-32011) });
    },
  ],
])("beside a spare endpoint %s", (_, atSpare, trouble) => {
  it("a collect does not wait, and makes few more calls", async () => {
    await start(trouble);
    // Calls that the last collect did not wait for.
    await expect.poll(() => forgetWhenQuiet()).toBe(true);
    expect(await collect()).toMatchObject({ success: true, collected: "1.0000" });
    expect(callsAt(preferred)).toEqual(AT_PREFERRED);
    await expect.poll(() => callsAt(spare)).toEqual(atSpare);
  });

  it("a lookup and NOTHING_TO_COLLECT make one call, to the preferred one", async () => {
    await start(trouble);
    const { id, handle } = world.account("newcomer");
    for (const ask of [() => world.lookup(handle), () => world.collect(id)]) {
      await ask();
      await expect.poll(() => forgetWhenQuiet()).toBe(true);
      await ask();
      expect([callsAt(preferred), callsAt(spare)]).toEqual([["getMultipleAccounts"], []]);
    }
  });
});

/** Whether no call has been made since the last time. */
function forgetWhenQuiet(): boolean {
  const isQuiet = [preferred, spare].every((endpoint) => callsAt(endpoint).length === 0);
  forgetCalls();
  return isQuiet;
}
