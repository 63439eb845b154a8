import { expect, it, onTestFinished } from "vitest";
import { from } from "../support/client.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { startWorld } from "../support/world.ts";

const MIN_LAMPORTS = 100_000n;
const BASE_FEE = 5_000n;
/** Above any fee without competition for priority. Compute units vary with the addresses. */
const LOW_FEE = 5_100n;

it("a transaction that lands without effect, as an owner can cause by withdrawing at the same moment, costs the budget its whole fee", async () => {
  const world = await startWorld({
    // Two fees at once for small collects.
    FEE_BUDGET_LAMPORTS_PER_HOUR: String(16n * LOW_FEE),
    MAX_PRIORITY_FEE_LAMPORTS: String(LOW_FEE - BASE_FEE),
  });
  onTestFinished(() => world.close());
  const { chain, rpc, feePayer } = world.sandbox;
  const accounts = ["artist001", "artist002", "artist003"].map(world.account);
  for (const { address, creatorVault } of accounts) {
    chain.setBalance(address, 10n ** 9n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + MIN_LAMPORTS);
  }
  const codes = [];
  for (const [i, { id, address }] of accounts.entries()) {
    onNext(rpc, isMethod("sendTransaction"), () => {
      chain.setBalance(address, 0n);
    });
    codes.push((await world.collect(id, from(`198.18.${i}.1`))).body.error);
  }
  expect(codes).toEqual(Array(3).fill("COLLECT_FAILED"));
  const fees = chain
    .ledger()
    .filter(({ message }) => message.accountKeys[0] === feePayer)
    .map(({ feeLamports }) => feeLamports);
  expect(fees).toHaveLength(2);
  for (const fee of fees) expect(fee).toBeLessThan(LOW_FEE);
});
