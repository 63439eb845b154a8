import { createStandstill, includeUnpaid } from "../../test/support/chain-levers.ts";
import { withFaults } from "../../test/support/faults.ts";
import { readConfig } from "../../src/config.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { PLACES } from "../../src/chain/launchpad/fee-accounts.ts";
import { keyAt } from "../../src/chain/primitives/derive-address.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { newMint } from "../../test/support/new-mint.ts";
import { startRedis } from "../../test/support/redis-server.ts";
import { addAmmFees } from "./add-amm-fees.ts";
import { aboveRent } from "./audit-ledger.ts";
import { createBadNodes } from "./bad-nodes.ts";
import { startEndpoints } from "./endpoints.ts";
import type { Problems } from "./problems.ts";
import { createRandom } from "../../test/support/random.ts";
import { startReplica, type Period } from "./replica.ts";
import {
  launchFailingCoins,
  launchSharedCoins,
  type SHARED_COINS,
  type SharedCoin,
} from "./shared-coins.ts";
import { startSlowProxy } from "./slow-proxy.ts";
import { createTimeline } from "./timeline.ts";
import { addCreatorFees } from "../../test/support/faucet.ts";

/**
 * As on mainnet. A blockhash is valid for 150 slots, which is 30 s, unless a scenario skips slots.
 */
const SLOT_MS = 200;
/** The bytes for which an account pays rent in addition to its data. */
const EMPTY_ACCOUNT_BYTES = 128;

/** The address of a site that sends its visitors' addresses in `X-Forwarded-For`. */
export const TRUSTED_CALLER = "10.8.0.1";

export type System = Awaited<ReturnType<typeof startSystem>>;

/** Where fees arrive: in a creator vault, in an AMM vault, or on a coin. */
type Place = "vault" | "amm" | "coin";

/**
 * Starts the system under load: a sandbox, three endpoints of its chain, Redis, and two gateway
 * processes. `shared` are the coins with shared fees to launch.
 */
export async function startSystem(
  env: Readonly<Record<string, string>>,
  seed: number,
  shared: typeof SHARED_COINS | [] = [],
) {
  const standstill = createStandstill();
  const sandbox = await startSandbox({
    ...{ slotMs: 0, rpcPort: 0, socialPort: 0 },
    now: standstill.now,
  });
  const { chain } = sandbox;
  const social = withFaults(
    sandbox.social,
    () => true,
    () => undefined,
  );
  includeUnpaid(chain, { withBalances: false });
  const known = sandbox.accounts.filter(({ suspended }) => !suspended);
  const sharedCoins = launchSharedCoins(sandbox, known, shared);
  const { failingCoins, fillStrangers, emptyStrangers } = launchFailingCoins(
    sandbox,
    shared.length > 0 ? known : [],
  );
  const accounts = known.map((account, i): SandboxAccount => ({
    ...account,
    coins: [
      ...toOwnCoins(sandbox, account, i % 2 === 0),
      ...sharedCoins
        .filter(({ shareholders }) =>
          shareholders.some(({ address }) => address === account.address),
        )
        .map(({ coin }) => coin),
    ],
  }));
  const timeline = createTimeline(chain, accounts, sharedCoins);
  const creatorVaults = new Set([
    ...accounts.map(({ creatorVault }) => creatorVault),
    ...[...sharedCoins, ...failingCoins].map(({ coin }) => coin.sharingConfig.creatorVault),
  ]);
  const [redis, rpc] = await Promise.all([
    startRedis(),
    startEndpoints(chain, timeline, creatorVaults, emptyStrangers),
  ]);
  const slowRedis = await startSlowProxy(redis.port);

  /**
   * The last height at which each blockhash is valid, and when its block was produced, in ms since
   * 1970.
   */
  const blockhashes = new Map<string, { readonly lastValid: number; readonly at: number }>();
  function recordBlockhash(): void {
    for (const commitment of ["processed", "finalized"] as const) {
      const { blockhash, lastValidBlockHeight: lastValid } = chain.latestBlockhash(commitment);
      if (!blockhashes.has(blockhash)) blockhashes.set(blockhash, { lastValid, at: Date.now() });
    }
  }
  /** When the block of each height became finalized, in milliseconds since 1970. */
  const heightFinalizedAt = new Map<number, number>();
  let finalizedHeight = chain.blockHeight("finalized");
  /** When each slot became finalized, in milliseconds since 1970. */
  const slotFinalizedAt = new Map<number, number>();
  let finalizedSlot = chain.slot("finalized");
  function advanceSlots(count: number): void {
    for (let i = 0; i < count; i++) {
      chain.advanceSlots(1);
      recordBlockhash();
      fillStrangers();
      for (; finalizedHeight < chain.blockHeight("finalized"); finalizedHeight++)
        heightFinalizedAt.set(finalizedHeight + 1, Date.now());
      for (; finalizedSlot < chain.slot("finalized"); finalizedSlot++)
        slotFinalizedAt.set(finalizedSlot + 1, Date.now());
    }
  }
  recordBlockhash();
  const clock = setInterval(advanceSlots, SLOT_MS, 1);

  const start = (replica: number) =>
    startReplica({
      ...sandbox.env,
      TRUST_PROXY: "127.0.0.1",
      TRUSTED_CALLERS: TRUSTED_CALLER,
      RPC_CALLS_PER_SECOND: "1000000",
      REDIS_URL: slowRedis.url,
      SOLANA_RPC_URL: rpc.endpoints.map((endpoint) => endpoint.urlFor(replica)).join(),
      ...env,
    });
  const replicas = await Promise.all([start(0), start(1)]);

  function addCoinFees(coin: CoinAddresses, lamports: bigint): void {
    sandbox.coins.addFees(coin.mint, lamports);
    timeline.refresh(coin);
  }

  function addVaultFees(creator: string, lamports: bigint, place: Place): void {
    const add = place === "amm" ? addAmmFees : addCreatorFees;
    add(chain, creator, lamports);
  }

  return {
    /** Makes all random choices of the run. */
    random: createRandom(seed),
    /** Whether each account's collects alternate between the replicas, over a slow Redis. */
    alternates: seed % 10 === 0,
    sandbox,
    social,
    feePayer: readConfig(sandbox.env).secrets.feePayerKeypair.publicKey.toBase58(),
    accounts,
    sharedCoins,
    /** Coins with shared fees whose distribution fails. */
    failingCoins,
    timeline,
    badNodes: createBadNodes(chain, timeline, blockhashes),
    redis,
    slowRedis,
    replicas,
    endpoints: rpc.endpoints,
    sent: rpc.sent,
    activity: rpc.activity,
    advanceSlots,
    /**
     * When a finalized block made a blockhash expire; Infinity if none has, -Infinity if it is
     * another chain's.
     */
    expiredAt(blockhash: string): number {
      const known = blockhashes.get(blockhash);
      return known ? (heightFinalizedAt.get(known.lastValid + 1) ?? Infinity) : -Infinity;
    },
    blockhashes,
    /** When healthy endpoints first showed this slot; Infinity if none has. */
    finalizedAt: (slot: number) => slotFinalizedAt.get(slot) ?? Infinity,
    /**
     * Adds fees to an account's creator vault, to its AMM vault, or to a coin that it created, as
     * trades do.
     */
    addFees({ address, coins }: SandboxAccount, lamports: number, place: Place): void {
      const { creator } = PLACES.CURVE.layout;
      const own = coins.find(
        ({ curve }) => keyAt(Buffer.from(chain.account(curve)!.data), creator) === address,
      );
      if (own && place === "coin") addCoinFees(own, BigInt(lamports));
      else addVaultFees(address, BigInt(lamports), place);
    },
    /** Adds fees to a coin with shared fees, or to a vault of its sharing config. */
    addSharedFees(shared: SharedCoin, lamports: number, place: Place): void {
      shared.arrived += BigInt(lamports);
      if (place === "coin") addCoinFees(shared.coin, BigInt(lamports));
      else
        addVaultFees(
          shared.coin.sharingConfig.address,
          BigInt(lamports),
          shared.isInPool ? place : "vault",
        );
    },
    /**
     * Lowers the rent if it is higher than this. That frees lamports in the vaults of sharing
     * configs.
     */
    setRent(lamportsPerByte: number): void {
      if (chain.rentExemptMinimum(0) <= BigInt(lamportsPerByte * EMPTY_ACCOUNT_BYTES)) return;
      const all = [...sharedCoins, ...failingCoins];
      const inVaults = () =>
        all.map(
          ({ coin: { sharingConfig: of } }) =>
            aboveRent(chain, of.creatorVault) + aboveRent(chain, of.ammVault),
        );
      const before = inVaults();
      timeline.setRent(lamportsPerByte);
      for (const [i, after] of inVaults().entries()) all[i]!.arrived += after - before[i]!;
    },
    /** Stops the cluster until the returned function is called. */
    standStill: () => standstill.standStill(chain),
    /** Whether the cluster stands still. It then takes no transaction, so no fees are added. */
    isStill: false,
    /** Times when an endpoint showed a stale state. */
    stale: [] as Period[],
    /**
     * Times when replicas may not have trusted the chain's slots yet, because the test had skipped
     * many at once.
     */
    skipped: [] as Period[],
    /** Times when Redis was frozen. */
    frozen: [] as Period[],
    /** Stops the replicas, and records what went wrong with them. */
    async stopReplicas(problems: Problems): Promise<void> {
      const exitCodes = await Promise.all(replicas.map((replica) => replica.stop()));
      if (exitCodes.some((code) => code !== 0))
        problems.add(
          "a replica that stopped with transactions in flight",
          `exit codes ${exitCodes.join()}`,
        );
      for (const error of replicas.flatMap(({ errors }) => errors))
        problems.add("an error in a replica's log", error);
    },
    async close() {
      clearInterval(clock);
      slowRedis.close();
      await Promise.all([sandbox.close(), rpc.close(), redis.stop()]);
    },
  };
}

/**
 * Launches a coin for an account, on a curve or in a pool. Launches none if the account's creator
 * vault is missing, because a sweep would have to pay the vault's rent. Ignores the account's coins
 * in seed.json.
 */
function toOwnCoins(
  { chain, coins }: Sandbox,
  account: SandboxAccount,
  isInPool: boolean,
): readonly CoinAddresses[] {
  if (chain.balance(account.creatorVault) === 0n) return [];
  if (!chain.account(account.ammVault)) setWrappedSol(chain, account.ammVaultAuthority, 0n);
  const mint = newMint();
  coins.launch({ mint, creator: account.address });
  if (isInPool) coins.migrate(mint);
  return [coins.addressesOf(mint)];
}
