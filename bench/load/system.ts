import { addAmmCreatorFees, addCreatorFees, setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { newMint } from "../../test/support/new-mint.ts";
import { startRedis } from "../../test/support/redis-server.ts";
import { startEndpoints } from "./endpoints.ts";
import { createLies } from "./lies.ts";
import { createRandom } from "./random.ts";
import { startReplica, type Period } from "./replica.ts";
import { createTimeline } from "./timeline.ts";

/** A blockhash lives 150 slots, so 15 s, if no scenario makes it expire sooner. */
const SLOT_MS = 100;

export type System = Awaited<ReturnType<typeof startSystem>>;

/** Starts all that is under load: a sandbox, two endpoints of its chain, Redis, and two gateway processes. */
export async function startSystem(env: Readonly<Record<string, string>>, seed: number) {
  const sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  const { chain } = sandbox;
  const accounts = sandbox.accounts
    .filter(({ suspended }) => !suspended)
    .map((account, i) => giveCoin(sandbox, account, i % 2 === 0));
  const timeline = createTimeline(chain, accounts);
  const lies = createLies(chain, timeline);
  const [redis, rpc] = await Promise.all([startRedis(), startEndpoints(chain, timeline)]);

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
      REDIS_URL: redis.url,
      SOLANA_RPC_URL: rpc.endpoints.map((endpoint) => endpoint.urlFor(replica)).join(),
      ...env,
    });
  const replicas = await Promise.all([start(0), start(1)]);

  return {
    /** Makes all random choices of the run. */
    random: createRandom(seed),
    sandbox,
    accounts,
    timeline,
    lies,
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
    /** Adds fees to an account's vault, the AMM's, or its coin, as trades do. */
    addFees(account: SandboxAccount, lamports: number, place: "vault" | "amm" | "coin"): void {
      const {
        address,
        coins: [coin],
      } = account;
      if (coin && place === "coin") {
        sandbox.coins.addFees(coin.mint, BigInt(lamports));
        timeline.refresh(account);
        return;
      }
      const programs = {
        launchpadProgramId: sandbox.env.LAUNCHPAD_PROGRAM_ID,
        ammProgramId: sandbox.env.LAUNCHPAD_AMM_PROGRAM_ID,
      };
      (place === "amm" ? addAmmCreatorFees : addCreatorFees)(chain, programs, address, BigInt(lamports));
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
 * Gives an account a coin, on its curve or in a pool, unless its vault is missing: then a sweep would have to pay for
 * it. The account's coins of seed.json are left alone.
 */
function giveCoin({ chain, coins }: Sandbox, account: SandboxAccount, isInPool: boolean): SandboxAccount {
  if (chain.balance(account.creatorVault) === 0n) return { ...account, coins: [] };
  if (!chain.account(account.ammVault)) setAmmVault(chain, account, 0n);
  const mint = newMint();
  coins.launch({ mint, creator: account.address });
  if (isInPool) coins.migrate(mint);
  return { ...account, coins: [coins.addressesOf(mint)] };
}
