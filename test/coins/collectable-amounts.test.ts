import fc from "fast-check";
import { beforeEach, describe, expect } from "vitest";
import { PublicKey } from "@solana/web3.js";
import { PLACES } from "../../src/chain/launchpad/fee-accounts.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import { newMint } from "../support/new-mint.ts";
import { withWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** So that a failing case can be repeated. */
const SEED = 73;
/** One transaction for the account, and one for each coin. */
const MAX_COLLECTS = 4;

const it = withWorld({
  RATE_LIMIT_MAX: "100000",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
});
let chain: World["sandbox"]["chain"];
let used = 0;
beforeEach(() => {
  ({ chain } = world.sandbox);
});

/** An account that no other test uses, without fees, with 1 SOL. */
function newAccount(): SandboxAccount {
  const account = world.account(`artist${String(++used).padStart(3, "0")}`);
  chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0));
  chain.setBalance(account.address, SOL);
  return account;
}

/** Where fees wait, in lamports; undefined for a place that does not exist. */
interface Fees {
  readonly onCurve: bigint;
  readonly inPool?: bigint | undefined;
  /** Whether the pool names another creator than the config. */
  readonly isPoolOfOther?: boolean;
  /** In the vaults of the sharing config. */
  readonly inVault?: bigint;
  readonly inAmm?: bigint | undefined;
}

/** A coin of which the account has 60%. */
function launch({ address }: SandboxAccount, fees: Fees): string {
  const mint = newMint();
  const { coins } = world.sandbox;
  const shareholders = [
    { address, bps: 6_000 },
    { address: STRANGER, bps: 4_000 },
  ];
  coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees: fees.onCurve });
  const { sharingConfig, pool } = coins.addressesOf(mint);
  if (fees.inPool !== undefined) coins.migrate(mint, { fees: fees.inPool });
  if (fees.inPool !== undefined && fees.isPoolOfOther) {
    const account = chain.account(pool)!;
    const data = Buffer.from(account.data);
    new PublicKey(STRANGER).toBuffer().copy(data, PLACES.POOL.layout.creator);
    chain.setAccount(pool, { ...account, data });
  }
  // It exists, so that no fees pay its rent.
  const { inVault = 0n } = fees;
  chain.setBalance(sharingConfig.creatorVault, chain.rentExemptMinimum(0) + inVault);
  if (fees.inAmm !== undefined) setAmmVault(chain, sharingConfig, fees.inAmm);
  return mint;
}

/**
 * Checks that the fees shown as collectable are at most what the vault shows, and that collects move
 * what the vault shows.
 */
async function expectShownIsMoved(account: SandboxAccount, mints: readonly string[]) {
  const query = `query ($id: String!, $mints: [String!]!) { walletById(socialId: $id) {
    balance(mints: $mints) { vaultLamports }
    coins(mints: $mints) { stage amount collectable reason }
  } }`;
  const { body } = await world.graphql(query, { id: account.id, mints });
  const { balance, coins } = body.data.walletById;
  const vault = BigInt(balance.vaultLamports);
  const collectable = coins
    .filter((coin: any) => coin.collectable)
    .reduce((sum: bigint, { amount }: any) => sum + BigInt(amount), 0n);
  expect({ coins, isMore: collectable > vault }).toMatchObject({ isMore: false });
  const before = chain.balance(account.address);
  for (let i = 0; i < MAX_COLLECTS; i++) {
    const { body } = await world.collect(account.id, {}, mints);
    if (!body.success) break;
  }
  expect({ coins, moved: chain.balance(account.address) - before }).toEqual({
    coins,
    moved: vault,
  });
}

describe("coins shown as collectable", () => {
  it.each<[string, Fees]>([
    ["in a config's AMM vault, of a coin without a pool", { onCurve: SOL, inAmm: SOL }],
    ["only in a config's AMM vault, of a coin without a pool", { onCurve: 0n, inAmm: SOL }],
    [
      "in a config's AMM vault, whose pool has another creator",
      { onCurve: SOL, inPool: SOL, isPoolOfOther: true, inAmm: SOL },
    ],
    [
      "in both vaults of a config, of a coin without a pool",
      { onCurve: 0n, inVault: SOL, inAmm: SOL },
    ],
    ["in a config's AMM vault and its pool", { onCurve: SOL, inPool: SOL, inAmm: SOL }],
    [
      "in a pool that is not worth the rent of a vault",
      { onCurve: SOL, inPool: 10_000_000n, inVault: SOL },
    ],
  ])("add up to no more than the vault shows and collects move: %s", async (_, fees) => {
    const account = newAccount();
    await expectShownIsMoved(account, [launch(account, fees)]);
  });

  it("add up to no more than the vault shows and collects move, wherever fees wait", async () => {
    const amount = fc.constantFrom(0n, 1_000n, 5_000_000n, SOL, 3n * SOL);
    const maybe = fc.option(amount, { nil: undefined });
    const fees = fc.record({
      onCurve: amount,
      inPool: maybe,
      isPoolOfOther: fc.boolean(),
      inVault: amount,
      inAmm: maybe,
    });
    const cases = fc.array(fees, { minLength: 1, maxLength: 3 });
    for (const some of fc.sample(cases, { seed: SEED, numRuns: 25 })) {
      const account = newAccount();
      await expectShownIsMoved(
        account,
        some.map((each) => launch(account, each)),
      );
    }
  });
});
