import { SystemProgram } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../../src/chain/launchpad/program-ids.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import type { Shareholder } from "../../src/chain/launchpad/sharing-config.ts";
import {
  ASSOCIATED_TOKEN_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
  WRAPPED_SOL_MINT,
} from "../../src/chain/launchpad/token-accounts.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { coinFees } from "../support/coin-balances.ts";
import { newMint } from "../support/new-mint.ts";
import { withWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/**
 * Where and how many fees wait on a malformed coin. A collect can try them before or after the good
 * coins' fees.
 */
const WAITING = {
  "with less on its curve than on the others": { onCurve: SOL / 2n },
  "with more in its pool than on the others": { inPool: 5n * SOL },
};
const MORE = { onCurve: 5n * SOL };
/** How many collects may follow one another: more than there are coins. */
const MAX_COLLECTS = 12;

/**
 * Shareholders that no distribution can pay, or that it must not pay. Anyone can write them into
 * the sharing config of a coin that an account shares.
 */
const SHAREHOLDERS: Record<
  string,
  (coin: CoinAddresses, account: SandboxAccount, feePayer: string) => string
> = {
  "the launch platform": () => LAUNCHPAD_PROGRAM_ID,
  "the AMM": () => LAUNCHPAD_AMM_PROGRAM_ID,
  "the platform's fees program": () => LAUNCHPAD_FEES_PROGRAM_ID,
  "the System program, whose id is the default key": () => SystemProgram.programId.toBase58(),
  "the Token program": () => TOKEN_PROGRAM_ID,
  "the Associated Token program": () => ASSOCIATED_TOKEN_PROGRAM_ID,
  "the Compute Budget program": () => "ComputeBudget111111111111111111111111111111",
  "the mint of wrapped SOL": () => WRAPPED_SOL_MINT,
  "the rent sysvar": () => "SysvarRent111111111111111111111111111111111",
  "the clock sysvar": () => "SysvarC1ock11111111111111111111111111111111",
  "the instructions sysvar": () => "Sysvar1nstructions1111111111111111111111111",
  "the fee payer": (_coin, _account, feePayer) => feePayer,
  "the account's vault": (_, { creatorVault }) => creatorVault,
  "the account's AMM vault": (_, { ammVault }) => ammVault,
  "the account itself, a second time": (_, { address }) => address,
  "the coin's mint": ({ mint }) => mint,
  "the coin's curve": ({ curve }) => curve,
  "the coin's pool": ({ pool }) => pool,
  "the config itself": ({ sharingConfig }) => sharingConfig.address,
  "the config's vault": ({ sharingConfig }) => sharingConfig.creatorVault,
  "the config's AMM vault": ({ sharingConfig }) => sharingConfig.ammVault,
};
type Kind = keyof typeof SHAREHOLDERS;
const KINDS = Object.keys(SHAREHOLDERS);

const it = withWorld({
  RATE_LIMIT_MAX: "100000",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
});
let chain: World["sandbox"]["chain"];
let used = 0;
beforeEach(() => {
  ({ chain } = world.sandbox);
  world.logLines.length = 0;
});

const addressesOf = (mint: string) => world.sandbox.coins.addressesOf(mint);

/** An account that no other test uses, with a SOL in its vault and 1 SOL at its address. */
function newAccount(): SandboxAccount {
  const account = world.account(`artist${String(++used).padStart(3, "0")}`);
  chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + SOL);
  chain.setBalance(account.address, SOL);
  return account;
}
function launchShared(
  shareholders: readonly Shareholder[],
  { onCurve: fees, inPool }: { onCurve?: bigint; inPool?: bigint },
  mint = newMint(),
): string {
  const { coins } = world.sandbox;
  coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees });
  if (inPool !== undefined) coins.migrate(mint, { fees: inPool });
  return mint;
}
function launchOwn({ address }: SandboxAccount): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: address, fees: SOL });
  return mint;
}
/** A coin of which the account has half, and these kinds of shareholders the rest. */
function launchMalformed(
  account: SandboxAccount,
  kinds: readonly Kind[],
  waiting: { onCurve?: bigint; inPool?: bigint } = MORE,
): string {
  const mint = newMint();
  const { feePayer } = world.sandbox;
  const bps = Math.floor(5_000 / kinds.length);
  const others = kinds.map((kind) => ({
    address: SHAREHOLDERS[kind]!(addressesOf(mint), account, feePayer),
    bps,
  }));
  const own = { address: account.address, bps: 10_000 - bps * kinds.length };
  return launchShared([own, ...others], waiting, mint);
}
const unexpected = () => world.logLines.filter((line) => line.includes("failed unexpectedly"));

/**
 * Collects until nothing waits in the vault and on the good coins. The first collect must succeed.
 * Later ones may fail, because they try the malformed coins, but none with an internal error.
 */
async function expectOthersCollected(account: SandboxAccount, malformed: readonly string[]) {
  const own = launchOwn(account);
  const shared = launchShared(
    [
      { address: account.address, bps: 5_000 },
      { address: STRANGER, bps: 5_000 },
    ],
    { onCurve: 2n * SOL },
  );
  const good = () =>
    chain.balance(account.creatorVault) -
    chain.rentExemptMinimum(0) +
    coinFees(chain, own).curve +
    coinFees(chain, shared).curve;
  const answers: any[] = [];
  while (answers.length < MAX_COLLECTS && good() > 0n) {
    const { body } = await world.collect(account.id, {}, [...malformed, own, shared]);
    answers.push(body);
    expect(unexpected()).toEqual([]);
    expect(body.error ?? "COLLECT_FAILED").toBe("COLLECT_FAILED");
  }
  expect(answers[0], JSON.stringify(answers)).toMatchObject({ success: true });
  expect(good()).toBe(0n);
  // Alone, a malformed coin has an answer of the contract too.
  for (const mint of malformed) {
    const { status, body } = await world.collect(account.id, {}, [mint]);
    if (!body.success) expect(["COLLECT_FAILED", "NOTHING_TO_COLLECT"]).toContain(body.error);
    expect([200, 400, 500]).toContain(status);
    const path = `/wallet/lookup?handle=${account.handle}&mint=${mint}`;
    expect((await world.request(path)).status).toBe(200);
  }
  expect(unexpected()).toEqual([]);
}

describe("a collect that names a coin whose sharing config pays", () => {
  it.each(KINDS)("%s, collects the vault and the other coins", async (kind) => {
    const account = newAccount();
    await expectOthersCollected(account, [launchMalformed(account, [kind])]);
  });

  it.each(Object.entries(WAITING))(
    "a program, %s, collects the vault and the other coins",
    async (_, waiting) => {
      const account = newAccount();
      const mint = launchMalformed(account, ["the launch platform"], waiting);
      await expectOthersCollected(account, [mint]);
    },
  );

  it("one of them each, of seven coins, collects the vault and the other coins", async () => {
    for (let i = 0; i < KINDS.length; i += 7) {
      const account = newAccount();
      const malformed = KINDS.slice(i, i + 7).map((kind) => launchMalformed(account, [kind]));
      await expectOthersCollected(account, malformed);
    }
  });
});

describe("a collect that names a coin whose sharing config", () => {
  it.each<[string, (account: SandboxAccount) => readonly Shareholder[]]>([
    ["has no shareholder", () => []],
    ["pays more than all", ({ address }) => [9_000, 9_000].map((bps) => ({ address, bps }))],
    ["pays less than all", ({ address }) => [{ address, bps: 5_000 }]],
    ["pays the account nothing", ({ address }) => [{ address, bps: 0 }]],
    ["names the account ten times", ({ address }) => Array(10).fill({ address, bps: 1_000 })],
    [
      "gives one address 655%",
      ({ address }) => [
        { address, bps: 65_535 },
        { address: STRANGER, bps: 65_535 },
      ],
    ],
  ])("%s, collects the vault and the other coins", async (_, shareholdersOf) => {
    const account = newAccount();
    await expectOthersCollected(account, [launchShared(shareholdersOf(account), MORE)]);
  });
});

describe("a collect that names only a coin whose sharing config pays a program", () => {
  it("collects the vault, again and again", async () => {
    const account = newAccount();
    const mint = launchMalformed(account, ["the launch platform"]);
    for (let i = 0; i < 3; i++) {
      chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + SOL);
      const { body } = await world.collect(account.id, {}, [mint]);
      expect(body).toMatchObject({ success: true, collected: "1.0000" });
    }
    expect(unexpected()).toEqual([]);
  });
});
