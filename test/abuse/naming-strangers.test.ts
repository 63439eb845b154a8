import { afterEach, beforeEach, expect, it } from "vitest";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { from, type Client } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import { isMethod, type TestSandbox } from "../support/sandbox.ts";

const SOL = 1_000_000_000n;
/** No transaction can write to it, so it fails a distribution to it. */
const SYSVAR = "SysvarRent111111111111111111111111111111111";
/** The strangers' addresses, and the /24s that they are in. */
const ADDRESSES = 18;
const BLOCKS = 7;
/** Each address requests as often as it may. */
const LIMIT = 20;
const COINS = 40;
const COINS_PER_REQUEST = 10;
/** What a chain call takes, so that requests overlap. */
const CALL_MS = 20;
/** The strangers collect until the owner has, which takes half a minute on a busy machine. */
const TIMEOUT_MS = 120_000;
const ENV = { RATE_LIMIT_MAX: String(LIMIT) };
/**
 * How many simulations with the owner's vault may come before its answer: its own three, and those
 * of the turns before and after it, at each of two replicas. A collect that waits for all the
 * strangers' collects sees far more.
 */
const MOST_SIMULATIONS = 12;

let sandbox: TestSandbox;
let clientAt: (i: number) => Client;
let owner: SandboxAccount;
let coins: string[];
const accomplices = () => ["artist001", "artist002", "artist003", "artist004"].map(sandbox.account);

function prepare(): void {
  owner = sandbox.account("creator");
  coins = Array.from({ length: COINS }, () => {
    const mint = newMint();
    const shareholders = [owner, ...accomplices()]
      .map(({ address }) => ({ address, bps: 1_990 }))
      .concat({ address: SYSVAR, bps: 50 });
    sandbox.coins.launch({ mint, creator: mint, kind: "shared", shareholders, fees: SOL });
    return mint;
  });
  sandbox.rpc.faults.add({ delayMs: CALL_MS });
}

/**
 * Strangers collect the owner's account and the other shareholders', always naming coins that
 * fail, until their limits or until the returned function is called.
 */
function attack(): () => Promise<unknown> {
  let isOver = false;
  async function run(i: number): Promise<void> {
    const address = `198.18.${i % BLOCKS}.${i}`;
    // Every third keeps the coins' configs busy through the other shareholders.
    const account = i % 3 === 0 ? accomplices()[i % 4]! : owner;
    for (let n = 0; n < LIMIT && !isOver; n++) {
      const first = (i * 7 + n * COINS_PER_REQUEST) % COINS;
      const mints = [...coins, ...coins].slice(first, first + COINS_PER_REQUEST);
      await clientAt(i + n).collect(account.id, from(address), mints);
    }
  }
  const all = Array.from({ length: ADDRESSES }, (_, i) => run(i));
  return () => {
    isOver = true;
    return Promise.all(all);
  };
}
const simulationsOfOwner = () =>
  sandbox.rpc.calls
    .filter(isMethod("simulateTransaction"))
    .filter(({ params }) => (params as any[])[1].accounts?.addresses.includes(owner.creatorVault))
    .length;

/** The owner's collects, one after another, while the strangers' go on. */
async function expectOwnerCollects(): Promise<void> {
  const stop = attack();
  try {
    await expect.poll(simulationsOfOwner).toBeGreaterThan(0);
    for (let i = 0; i < 3; i++) await expectOwnerCollectsOnce(i);
  } finally {
    await stop();
  }
}

async function expectOwnerCollectsOnce(i: number): Promise<void> {
  const { chain } = sandbox;
  const mint = newMint();
  for (const mints of [[], [mint]]) {
    sandbox.coins.launch({ mint, creator: owner.address, fees: SOL });
    chain.setBalance(owner.creatorVault, chain.rentExemptMinimum(0) + SOL);
    const before = simulationsOfOwner();
    const { body } = await clientAt(i).collect(owner.id, from(`203.0.113.${i}`), mints);
    // A stranger's collect may have moved what is in the vault, but not what is on the coin.
    if (mints.length > 0) expect(body).toMatchObject({ success: true });
    else expect(body.error ?? "NOTHING_TO_COLLECT").toBe("NOTHING_TO_COLLECT");
    expect(chain.balance(owner.creatorVault)).toBe(chain.rentExemptMinimum(0));
    expect(simulationsOfOwner() - before).toBeLessThanOrEqual(MOST_SIMULATIONS);
  }
}

describeWithRedis("strangers at two replicas who name failing coins all the time", () => {
  let redis: RedisServer;
  let replicas: Replicas;
  beforeEach(async () => {
    redis = await startRedis();
    replicas = await startReplicas(redis.url, { env: ENV });
    ({ sandbox } = replicas);
    clientAt = (i) => replicas.at(i);
    prepare();
  });
  afterEach(async () => {
    sandbox.rpc.faults.clear();
    await replicas.close();
    await redis.stop();
  });

  it(
    "do not keep the owner from collecting, without coins and with one",
    expectOwnerCollects,
    TIMEOUT_MS,
  );
});
