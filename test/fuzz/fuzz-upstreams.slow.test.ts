import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { createAddresses, type AddressesOf } from "../../src/chain/launchpad/account-addresses.ts";
import { formatSol, toLamports } from "../../src/chain/primitives/lamports.ts";
import { readConfig } from "../../src/config.ts";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import { createGateway } from "../../src/gateway.ts";
import { createLogger } from "../../src/observability/log.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { expectCollect, expectGraphQL, expectLookup } from "../support/fuzz/contract.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";
import { inject } from "../support/inject.ts";
import {
  corruptions,
  startCorruptedUpstreams,
  type Corruption,
} from "../support/fuzz/corrupted-upstreams.ts";

/** Short, so that a blockhash expires within seconds. */
const SLOT_MS = 50;

let sandbox: Sandbox;
let addressesOf: AddressesOf;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: SLOT_MS, rpcPort: 0, socialPort: 0 });
  addressesOf = createAddresses(readConfig(sandbox.env));
  sandbox.chain.setBalance(feePayer(), 10n ** 15n);
});
afterAll(() => sandbox.close());

const feePayer = () => readConfig(sandbox.env).secrets.feePayerKeypair.publicKey.toBase58();

/** A new gateway for one case, with empty caches, whose upstreams are corrupted. */
async function startGateway(applied: readonly Corruption[], env: Record<string, string> = {}) {
  const upstreams = await startCorruptedUpstreams(sandbox, applied);
  const config = readConfig({
    ...sandbox.env,
    SOCIAL_API_URL: upstreams.socialUrl,
    SOLANA_RPC_URL: upstreams.rpcUrl,
    ...env,
  });
  const { api, settled } = createGateway(config, { log: createLogger("silent") });
  async function ask(path: string, init?: Parameters<typeof inject>[2]) {
    const { body, ...response } = await inject(api, path, init);
    return { ...response, body: JSON.parse(body) };
  }
  const post = (path: string, body: object) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return { ...upstreams, ask, post, settled };
}

const NETWORK_ERRORS: ErrorCode[] = [
  "SOCIAL_NOT_FOUND",
  "SOCIAL_RATE_LIMITED",
  "SOCIAL_API_UNAVAILABLE",
];
const BALANCE_METHODS = ["getMultipleAccounts"];

/** The ids that the network has returned for a handle in any case, valid or not. */
function idsFor(handle: string, answers: readonly { method: string; body: any }[]): unknown[] {
  return answers
    .filter(({ method, body }) => method === "social" && Array.isArray(body?.data))
    .flatMap(({ body }) => body.data)
    .filter(
      (row) =>
        typeof row?.username === "string" && row.username.toLowerCase() === handle.toLowerCase(),
    )
    .map(({ id }) => id);
}

fuzz("any upstream answers to a lookup lead to a correct wallet or an error", {
  share: 0.04,
  parallelRuns: 4,
  cases: fc.record({
    handle: fc.constantFrom("creator", "ARTIST001", "graduate", "newcomer", "suspended", "nobody"),
    applied: fc.array(corruptions(["social", "social", ...BALANCE_METHODS]), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  async check({ handle, applied }) {
    await using gateway = await startGateway(applied);
    const { answers, ask, post } = gateway;
    const allowed: ErrorCode[] = ["SOCIAL_NOT_FOUND"];
    if (applied.some(({ method }) => method === "social")) allowed.push(...NETWORK_ERRORS);
    if (applied.some(({ method }) => method !== "social")) allowed.push("LOOKUP_FAILED");

    const answer = await ask(`/wallet/lookup?handle=${handle}`);
    expectLookup(answer, addressesOf, allowed);
    if (answer.status === 200) {
      expect(answer.body.handle.toLowerCase()).toBe(handle.toLowerCase());
      expect(idsFor(handle, answers)).toContain(answer.body.socialId);
    }
    const query = `{ wallet(handle: "${handle}") { handle socialId address balance { vault pda total withdrawable vaultLamports } } }`;
    const { status, body } = await post("/graphql", { query });
    expect(status).toBe(200);
    expectGraphQL(body, allowed);
    const wallet = body.data.wallet;
    if (wallet) expect(wallet.address).toBe(addressesOf(wallet.socialId).address);
  },
});

/**
 * The gateway caches the answers to these methods, so a corrupted one affects later collects too.
 */
const CACHED_METHODS = ["getLatestBlockhash"];
const FAILURES: ErrorCode[] = ["COLLECT_FAILED", "INSUFFICIENT_FUNDS"];
const BACKS_OFF =
  /^The account's last transaction failed on the chain although its simulation succeeded/;
let accounts = 0n;

fuzz("any chain answers to a collect lead to one payment at most", {
  share: 0.03,
  parallelRuns: 16,
  cases: fc.record({
    isGraphQL: fc.boolean(),
    lamports: fc.bigInt({ min: 100_000n, max: 10n ** 12n }),
    applied: fc.array(
      corruptions([
        ...BALANCE_METHODS,
        "simulateTransaction",
        "getRecentPrioritizationFees",
        "getLatestBlockhash",
        "getBlockHeight",
        "sendTransaction",
        "getSignatureStatuses",
        "getEpochInfo",
        "isBlockhashValid",
        "getTransaction",
      ]),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  async check({ isGraphQL, lamports, applied }) {
    const { chain } = sandbox;
    const socialId = (10n ** 18n + accounts++).toString();
    const { address, creatorVault } = addressesOf(socialId);
    const minimum = chain.rentExemptMinimum(0);
    chain.setBalance(creatorVault, minimum + lamports);
    chain.setBalance(address, minimum);
    await using gateway = await startGateway(applied, {
      RPC_TIMEOUT_MS: "600000",
      COLLECT_TIMEOUT_MS: "3000",
    });
    const { post, settled, stopCorrupting } = gateway;
    const collect = () => post("/collect", { socialId });

    const query = `mutation { collect(socialId: "${socialId}") { success collected newBalance newBalanceLamports txSignature error } }`;
    if (isGraphQL) expectGraphQL((await post("/graphql", { query })).body, FAILURES);
    else expectCollect(await collect(), ["NOTHING_TO_COLLECT", ...FAILURES]);
    stopCorrupting();
    if (applied.some(({ method }) => CACHED_METHODS.includes(method))) return;
    await settled();
    // A slow machine may need several tries.
    let again = await collect();
    while (again.body.error === "COLLECT_FAILED" && !BACKS_OFF.test(again.body.message))
      again = await collect();
    if (BACKS_OFF.test(again.body.message)) {
      // After a corrupted simulation the transaction may fail on the chain: the account backs off,
      // and nothing moved.
      expect(chain.balance(creatorVault)).toBe(minimum + lamports);
      return;
    }
    expectCollect(again, ["NOTHING_TO_COLLECT"]);
    if (again.status === 200) expect(again.body.collected).toBe(formatSol(toLamports(lamports)));

    const landed = chain
      .ledger()
      .filter(
        ({ err, message }) =>
          err === null && message.accountKeys.some((key) => key === creatorVault),
      );
    expect(landed.length).toBe(1);
    expect([chain.balance(creatorVault), chain.balance(address)]).toEqual([
      minimum,
      minimum + lamports,
    ]);
  },
});
