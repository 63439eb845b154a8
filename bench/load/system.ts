import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { addAmmCreatorFees, addCreatorFees, setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { newMint } from "../../test/support/new-mint.ts";
import { startRedis } from "../../test/support/redis-server.ts";
import { startEndpoints } from "./endpoints.ts";
import { createLies, createRatchet } from "./lies.ts";
import { createRandom } from "./random.ts";
import { startReplica, type Period } from "./replica.ts";
import { launchFailingCoins, launchSharedCoins, type SHARED_COINS, type SharedCoin } from "./shared-coins.ts";
import { createTimeline } from "./timeline.ts";

/** As on mainnet. A blockhash lives 150 slots, so 30 s, if no scenario makes it expire sooner. */
const SLOT_MS = 200;

/** A site that states its visitors' addresses. */
export const TRUSTED_CALLER = "10.8.0.1";

export type System = Awaited<ReturnType<typeof startSystem>>;

/** Where fees arrive: in a creator vault, in an AMM vault, or on a coin. */
type Place = "vault" | "amm" | "coin";

/**
 * Starts all that is under load: a sandbox with some shared coins, two endpoints of its chain, Redis, and two gateway
 * processes.
 */
export async function startSystem(
  env: Readonly<Record<string, string>>,
  seed: number,
  shared: typeof SHARED_COINS | [] = [],
) {
  const sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  const { chain } = sandbox;
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
        .filter(({ shareholders }) => shareholders.some(({ address }) => address === account.address))
        .map(({ coin }) => coin),
    ],
  }));
  const timeline = createTimeline(chain, accounts, sharedCoins);
  const lies = createLies(chain, timeline);
  const creatorVaults = new Set([
    ...accounts.map(({ creatorVault }) => creatorVault),
    ...[...sharedCoins, ...failingCoins].map(({ coin }) => coin.sharingConfig.creatorVault),
  ]);
  const [redis, rpc] = await Promise.all([
    startRedis(),
    startEndpoints(chain, timeline, creatorVaults, emptyStrangers),
  ]);

  /** The last height at which each blockhash is valid. */
  const lastValidHeights = new Map<string, number>();
  function recordBlockhash(): void {
    const { blockhash, lastValidBlockHeight } = chain.latestBlockhash("processed");
    lastValidHeights.set(blockhash, lastValidBlockHeight);
  }
  /** When the block of each height became finalized, in milliseconds since 1970. */
  const finalizedAt = new Map<number, number>();
  function advanceSlots(count: number): void {
    for (let i = 0; i < count; i++) {
      chain.advanceSlots(1);
      recordBlockhash();
      fillStrangers();
      finalizedAt.set(chain.blockHeight("finalized"), Date.now());
    }
  }
  // So that the confirmed blockhash is known, too.
  recordBlockhash();
  advanceSlots(1);
  const clock = setInterval(advanceSlots, SLOT_MS, 1);

  const start = (replica: number) =>
    startReplica({
      ...sandbox.env,
      TRUST_PROXY: "127.0.0.1",
      TRUSTED_CALLERS: TRUSTED_CALLER,
      REDIS_URL: redis.url,
      SOLANA_RPC_URL: rpc.endpoints.map((endpoint) => endpoint.urlFor(replica)).join(),
      ...env,
    });
  const replicas = await Promise.all([start(0), start(1)]);

  function addCoinFees(coin: CoinAddresses, lamports: bigint): void {
    sandbox.coins.addFees(coin.mint, lamports);
    timeline.refresh(coin);
  }

  function addVaultFees(creator: string, lamports: bigint, place: Place): void {
    const launchpad = { launchpadProgramId: LAUNCHPAD_PROGRAM_ID, ammProgramId: LAUNCHPAD_AMM_PROGRAM_ID };
    const add = place === "amm" ? addAmmCreatorFees : addCreatorFees;
    add(chain, launchpad, creator, lamports);
  }

  return {
    /** Makes all random choices of the run. */
    random: createRandom(seed),
    sandbox,
    accounts,
    sharedCoins,
    /** Coins that strangers share with accounts, and whose distribution fails. */
    failingCoins,
    timeline,
    lies,
    ratchet: createRatchet(chain),
    redis,
    replicas,
    endpoints: rpc.endpoints,
    sent: rpc.sent,
    activity: rpc.activity,
    advanceSlots,
    /** When a blockhash expired in a finalized block; Infinity if it has not, -Infinity for another chain's. */
    expiredAt(blockhash: string): number {
      const lastValid = lastValidHeights.get(blockhash);
      return lastValid === undefined ? -Infinity : (finalizedAt.get(lastValid + 1) ?? Infinity);
    },
    /** Adds fees to an account's vault, the AMM's, or its own coin, as trades do. */
    addFees({ address, coins }: SandboxAccount, lamports: number, place: Place): void {
      const own = coins.find(({ mint }) => sandbox.coins.creatorOf(mint) === address);
      if (own && place === "coin") addCoinFees(own, BigInt(lamports));
      else addVaultFees(address, BigInt(lamports), place);
    },
    /** Adds fees to a shared coin, or to the vaults of its sharing config. */
    addSharedFees(shared: SharedCoin, lamports: number, place: Place): void {
      shared.arrived += BigInt(lamports);
      if (place === "coin") addCoinFees(shared.coin, BigInt(lamports));
      else
        addVaultFees(shared.coin.sharingConfig.address, BigInt(lamports), shared.isInPool ? place : "vault");
    },
    /** When an endpoint had a stale view. */
    stale: [] as Period[],
    /** When Redis did not answer. */
    frozen: [] as Period[],
    /** Stops the replicas; returns their exit codes. */
    stopReplicas: () => Promise.all(replicas.map((replica) => replica.stop())),
    async close() {
      clearInterval(clock);
      await Promise.all([sandbox.close(), rpc.close(), redis.stop()]);
    },
  };
}

/**
 * Launches a coin of an account, on its curve or in a pool, unless its vault is missing: then a sweep would have to pay
 * for it. The account's coins of seed.json are left alone.
 */
function toOwnCoins(
  { chain, coins }: Sandbox,
  account: SandboxAccount,
  isInPool: boolean,
): readonly CoinAddresses[] {
  if (chain.balance(account.creatorVault) === 0n) return [];
  if (!chain.account(account.ammVault)) setAmmVault(chain, account, 0n);
  const mint = newMint();
  coins.launch({ mint, creator: account.address });
  if (isInPool) coins.migrate(mint);
  return [coins.addressesOf(mint)];
}
