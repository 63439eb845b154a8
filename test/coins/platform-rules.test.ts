import { PublicKey } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import { TOKEN_ACCOUNT_BYTES } from "../../src/chain/launchpad/token-accounts.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const SOL = 1_000_000_000n;
const BASE_FEE = 5_000n;

const it = withWorld({
  RATE_LIMIT_MAX: "100000",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
});
/** An account that no other test uses. */
let account: SandboxAccount;
let tests = 0;
let collectsBefore: number;
beforeEach(() => {
  account = world.account(`artist0${10 + tests++}`);
  collectsBefore = world.sandbox.landedCollects().length;
  setVault(account, 0n);
  chain.setBalance(account.address, SOL);
});

const rent = () => chain.rentExemptMinimum(0);
/** `fees`: above the rent-exempt minimum. */
function setVault({ creatorVault }: Pick<SandboxAccount, "creatorVault">, fees: bigint): void {
  chain.setBalance(creatorVault, rent() + fees);
}
const newAddress = () => PublicKey.unique().toBase58();
/** The vault's balance, and the reasons of the coin if it has fees. */
const shown = async (mint = "") => {
  const { body } = await world.request(`/wallet/lookup?handle=${account.handle}&mint=${mint}`);
  return [body.balance.vault, ...(body.coins ?? []).map(({ reason }: any) => reason)];
};
const collect = async (...mints: string[]) => (await world.collect(account.id, {}, mints)).body;
const landed = () => world.sandbox.landedCollects().slice(collectsBefore);
const landedCount = () => landed().length;
const simulations = () => world.chainCalls().filter((method) => method === "simulateTransaction");
/** Runs `act` between a collect's simulation and its landing. */
function beforeLanding(act: () => void): void {
  onNext(world.sandbox.rpc, isMethod("sendTransaction"), act);
}

/** A coin whose fees are shared, without fees on it; `bps` by address, in ten-thousandths. */
function launchShared(bps: Record<string, number>, fees = 0n) {
  const mint = newMint();
  const shareholders = Object.entries(bps).map(([address, bps]) => ({ address, bps }));
  world.sandbox.coins.launch({ mint, creator: STRANGER, shareholders, fees });
  return { mint, config: world.sandbox.coins.addressesOf(mint).sharingConfig };
}

describe("a transaction that lands without effect, because a receiver was emptied,", () => {
  it("fails no other account in it", async () => {
    const other = world.account("artist002");
    setVault(account, 500_000n);
    setVault(other, SOL);
    beforeLanding(() => {
      chain.setBalance(account.address, 0n);
    });
    const mutation = `mutation ($collects: [CollectInput!]!) {
      collectMany(collects: $collects) { success lamports: collectedLamports }
    }`;
    const { body } = await world.graphql(mutation, {
      collects: [account, other].map(({ id }) => ({ socialId: id })),
    });
    expect(landedCount()).toBe(1);
    expect(body.data.collectMany).toEqual([null, { success: true, lamports: String(SOL) }]);
    expect(body.errors).toMatchObject([{ extensions: { code: "COLLECT_FAILED" } }]);
  });
});

describe("a distribution", () => {
  it("beside a shareholder that does not exist pays once its part is the rent of an account", async () => {
    const { mint, config } = launchShared({ [account.address]: 9_000, [newAddress()]: 1_000 });
    const minimum = 10n * rent();
    setVault(config, 5_000_000n);
    expect(await collect(mint)).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    const below = ["0.0000", "NOTHING_WAITING", "BELOW_SHARING_MINIMUM"];
    expect(await shown(mint)).toEqual(below);
    // One more trade, one lamport short of the minimum.
    setVault(config, minimum - 1n);
    expect(await shown(mint)).toEqual(below);
    setVault(config, minimum);
    expect(await shown(mint)).toEqual(["0.0058", "NOTHING_WAITING", null]);
    expect(await collect(mint)).toMatchObject({ success: true, collected: "0.0058" });
    expect(landedCount()).toBe(1);
  });

  it.each([
    [1_131_519n, 678_911n],
    // One lamport more than can be divided.
    [166_667n, 100_000n],
  ])("of %d lamports is shown and paid, if all shareholders exist", async (fees, share) => {
    const { mint, config } = launchShared({ [account.address]: 6_000, [STRANGER]: 4_000 });
    setVault(config, fees);
    const text = `0.000${String(share / 100_000n)}`;
    expect(await shown(mint)).toEqual([text, "NOTHING_WAITING", null]);
    const held = chain.balance(account.address);
    expect(await collect(mint)).toMatchObject({ success: true, collected: text });
    expect(chain.balance(account.address) - held).toBe(share);
  });

  describe("whose vault would stay below its rent with the AMM's transfer alone", () => {
    /** `fees`: on the curve. The sharing config's creator vault does not exist. */
    function launch({ fees, inAmm }: { fees: bigint; inAmm: bigint }) {
      const shares = { [account.address]: 6_000, [STRANGER]: 4_000 };
      const { mint, config } = launchShared(shares, fees);
      world.sandbox.coins.migrate(mint);
      chain.setBalance(config.creatorVault, 0n);
      setWrappedSol(chain, config.ammVaultAuthority, inAmm);
      return { mint, config };
    }

    it("sweeps the curve first, at the price of the vault's whole rent", async () => {
      const { mint, config } = launch({ fees: 100_000_000n, inAmm: 649_000n });
      expect(await shown(mint)).toEqual(["0.0603", null, "NOTHING_WAITING", null]);
      const [held, payer] = [account.address, world.sandbox.feePayer].map(chain.balance);
      expect(await collect(mint)).toMatchObject({ success: true, collected: "0.0603" });
      expect(chain.balance(account.address) - held!).toBe((100_649_000n * 6n) / 10n);
      const spent = payer! - chain.balance(world.sandbox.feePayer) - rent();
      expect([spent >= BASE_FEE, spent < 2n * BASE_FEE]).toEqual([true, true]);
      expect(chain.balance(config.ammVault)).toBe(chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES));
    });

    it("is not made, if that rent is too high for the account's share", async () => {
      const { mint } = launch({ fees: 50_000_000n, inAmm: 400_000n });
      const tooHigh = ["0.0000", "RENT_TOO_HIGH", "NOTHING_WAITING", "RENT_TOO_HIGH"];
      expect(await shown(mint)).toEqual(tooHigh);
      expect(await collect(mint)).toMatchObject({ error: "NOTHING_TO_COLLECT" });
      expect(landedCount()).toBe(0);
    });
  });
});

describe("the AMM vault's lamports above its rent", () => {
  /** The rent of a token account until September 2026. */
  const OLD_RENT = 2_039_280n;

  it.each([
    [0n, "0.0005"],
    [3_000n, "0.0005"],
    [1_000_000n, "0.0015"],
  ])("are shown and collected with %d lamports of wrapped SOL", async (wrapped, text) => {
    setWrappedSol(chain, account.ammVaultAuthority, wrapped);
    const spare = OLD_RENT - chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
    const vault = chain.account(account.ammVault)!;
    chain.setAccount(account.ammVault, { ...vault, lamports: vault.lamports + spare });
    expect(await shown()).toEqual([text]);
    const held = chain.balance(account.address);
    expect(await collect()).toMatchObject({ success: true, collected: text });
    expect(chain.balance(account.address) - held).toBe(wrapped + spare);
    expect(await shown()).toEqual(["0.0000"]);
  });
});

describe("a transaction's 64 instructions, inner ones included,", () => {
  it.each([
    [22, false],
    [6, true],
  ])(
    "hold one less than %d collects (with the AMM's transfer: %s): these take two transactions",
    async (count, withAmm) => {
      const accounts = world.sandbox.accounts
        .filter(({ handle }) => /^artist\d+$/.test(handle))
        .slice(100, 100 + count);
      for (const each of accounts) {
        setVault(each, SOL);
        if (withAmm) setWrappedSol(chain, each.ammVaultAuthority, SOL);
      }
      world.forgetCalls();
      const mutation = `mutation ($collects: [CollectInput!]!) {
      collectMany(collects: $collects) { success }
    }`;
      const { body } = await world.graphql(mutation, {
        collects: accounts.map(({ id }) => ({ socialId: id })),
      });
      expect(body.data.collectMany).toEqual(accounts.map(() => ({ success: true })));
      expect(landedCount()).toBe(2);
      expect(simulations()).toHaveLength(2);
      expect(landed().map(({ err }) => err)).toEqual([null, null]);
    },
  );
});
