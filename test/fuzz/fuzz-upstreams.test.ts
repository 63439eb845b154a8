import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { createAddresses, type AddressesOf } from "../../src/chain/addresses.ts";
import { formatSol, toLamports } from "../../src/chain/lamports.ts";
import { readConfig } from "../../src/config.ts";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import { createGateway } from "../../src/gateway.ts";
import { createLogger } from "../../src/observability/log.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { expectCollect, expectGraphQL, expectLookup } from "../support/fuzz/contract.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";
import { lies, startLiar, type Lie } from "../support/fuzz/liar.ts";

/** Short, so that a blockhash which no transaction can land with is old in seconds. */
const SLOT_MS = 50;

let sandbox: Sandbox;
let liar: Awaited<ReturnType<typeof startLiar>>;
let addressesOf: AddressesOf;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: SLOT_MS, rpcPort: 0, socialPort: 0 });
  liar = await startLiar({ chainUrl: sandbox.rpc.url, socialUrl: sandbox.social.url });
  addressesOf = createAddresses(readConfig(sandbox.env).chain);
  sandbox.chain.setBalance(feePayer(), 10n ** 15n);
});
afterAll(async () => {
  await liar.close();
  await sandbox.close();
});

const feePayer = () => readConfig(sandbox.env).secrets.feePayer.publicKey.toBase58();

/** A gateway of its own for a case, that believes nothing yet. */
function gatewayThatHears(told: readonly Lie[], env: Record<string, string> = {}) {
  const ear = liar.tell(told);
  const config = readConfig({
    ...sandbox.env,
    SOCIAL_API_URL: ear.socialUrl,
    SOLANA_RPC_URL: ear.rpcUrl,
    ...env,
  });
  const { fetch, settled } = createGateway(config, { log: createLogger("silent") });
  async function ask(path: string, init?: RequestInit) {
    const response = await fetch(new Request(`http://tributary${path}`, init), {
      remoteAddress: "127.0.0.1",
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }
  const post = (path: string, body: object) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return { ear, ask, post, settled };
}

const OF_NETWORK: ErrorCode[] = ["SOCIAL_NOT_FOUND", "SOCIAL_RATE_LIMITED", "SOCIAL_API_UNAVAILABLE"];
const BALANCE_METHODS = ["getMultipleAccounts", "getMinimumBalanceForRentExemption"];

/** The ids that the network has named for a handle, however it has written them. */
function idsFor(handle: string, said: readonly { method: string; body: any }[]): unknown[] {
  return said
    .filter(({ method, body }) => method === "social" && Array.isArray(body?.data))
    .flatMap(({ body }) => body.data)
    .filter((row) => typeof row?.username === "string" && row.username.toLowerCase() === handle.toLowerCase())
    .map(({ id }) => id);
}

fuzz("whatever the upstreams answer to a lookup", {
  share: 0.04,
  lanes: 4,
  cases: fc.record({
    handle: fc.constantFrom("creator", "ARTIST001", "graduate", "newcomer", "suspended", "nobody"),
    told: fc.array(lies(["social", "social", ...BALANCE_METHODS]), { minLength: 1, maxLength: 2 }),
  }),
  async check({ handle, told }) {
    const { ear, ask, post } = gatewayThatHears(told);
    const allowed: ErrorCode[] = ["SOCIAL_NOT_FOUND"];
    if (told.some(({ method }) => method === "social")) allowed.push(...OF_NETWORK);
    if (told.some(({ method }) => method !== "social")) allowed.push("LOOKUP_FAILED");

    const answer = await ask(`/wallet/lookup?handle=${handle}`);
    expectLookup(answer, addressesOf, allowed);
    if (answer.status === 200) {
      expect(answer.body.handle.toLowerCase()).toBe(handle.toLowerCase());
      expect(idsFor(handle, ear.said)).toContain(answer.body.socialId);
    }
    const query = `{ wallet(handle: "${handle}") { handle socialId address balance { vault pda total withdrawable vaultLamports } } }`;
    const { status, body } = await post("/graphql", { query });
    expect(status).toBe(200);
    expectGraphQL(body, allowed);
    const wallet = body.data.wallet;
    if (wallet) expect(wallet.address).toBe(addressesOf(wallet.socialId).address);
  },
});

/** What a lie about one of these brings about can last: the gateway believes it for a while, as it has to. */
const BELIEVED = ["getMinimumBalanceForRentExemption", "getLatestBlockhash"];
const FAILURES: ErrorCode[] = ["COLLECT_FAILED", "INSUFFICIENT_FUNDS"];
const RESTS = /^The account's last transaction failed on the chain although its simulation succeeded/;
let accounts = 0n;

fuzz("whatever the chain answers to a collect", {
  share: 0.03,
  lanes: 16,
  cases: fc.record({
    isGraphQL: fc.boolean(),
    lamports: fc.bigInt({ min: 100_000n, max: 10n ** 12n }),
    told: fc.array(
      lies([
        ...BALANCE_METHODS,
        "simulateTransaction",
        "getRecentPrioritizationFees",
        "getLatestBlockhash",
        "sendTransaction",
        "getSignatureStatuses",
        "getEpochInfo",
        "getTransaction",
      ]),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  async check({ isGraphQL, lamports, told }) {
    const { chain } = sandbox;
    const socialId = (10n ** 18n + accounts++).toString();
    const { address, creatorVault } = addressesOf(socialId);
    const minimum = chain.rentExemptMinimum(0);
    chain.setBalance(creatorVault, minimum + lamports);
    chain.setBalance(address, minimum);
    const { ear, post, settled } = gatewayThatHears(told, {
      RPC_TIMEOUT_MS: "600000",
      COLLECT_TIMEOUT_MS: "3000",
    });
    const collect = () => post("/collect", { socialId });

    const query = `mutation { collect(socialId: "${socialId}") { success collected newBalance newBalanceLamports txSignature error } }`;
    if (isGraphQL) expectGraphQL((await post("/graphql", { query })).body, FAILURES);
    else expectCollect(await collect(), ["NOTHING_TO_COLLECT", ...FAILURES]);
    ear.repent();
    if (told.some(({ method }) => BELIEVED.includes(method))) return;
    await settled();
    // A busy machine may need several tries.
    let again = await collect();
    while (again.body.error === "COLLECT_FAILED" && !RESTS.test(again.body.message)) again = await collect();
    if (RESTS.test(again.body.message)) {
      // A simulation that lies can make a transaction fail: its account rests for a while, and nothing was moved.
      expect(chain.balance(creatorVault)).toBe(minimum + lamports);
      return;
    }
    expectCollect(again, ["NOTHING_TO_COLLECT"]);
    if (again.status === 200) expect(again.body.collected).toBe(formatSol(toLamports(lamports)));

    const landed = chain
      .ledger()
      .filter(
        ({ err, message }) => err === null && message.staticAccounts.some((key) => key === creatorVault),
      );
    expect(landed.length).toBe(1);
    expect([chain.balance(creatorVault), chain.balance(address)]).toEqual([minimum, minimum + lamports]);
  },
});
