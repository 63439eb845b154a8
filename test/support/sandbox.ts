import { createStandstill } from "./chain-levers.ts";
import { Keypair } from "@solana/web3.js";
import { toKeyBytes } from "../../src/chain/primitives/derive-address.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import type { Overrides } from "../../src/services.ts";
import { createLoopbackServer } from "../../src/sandbox/loopback-server.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { withFaults, withRpcFaults, type FaultyServer } from "./faults.ts";
import { newMint } from "./new-mint.ts";

/** Time from a transaction to the end of its slot. */
const SLOT_MS = 20;

/**
 * For tests that wait for these. A test that relies on one not being over passes {@link NEVER_MS}.
 */
export const SHORT_WAITS = {
  finalityMs: 20,
  // Blockhashes are shared for less time than a collect takes.
  pollMs: 5,
  resendMs: 100,
  rereadMs: 20,
  retryMs: 5,
  aloneMs: 100,
  absentMs: 80,
  failedMs: 200,
  balanceMaxAgeMs: 50,
  livePeriodMs: 50,
} satisfies Overrides;
/** Longer than any test. */
export const NEVER_MS = 600_000;

export type TestSandbox = Awaited<ReturnType<typeof startTestSandbox>>;

/**
 * Starts a sandbox on free ports. Slots advance only while a landed transaction is not final, and
 * by `chain.advanceSlots`, so a blockhash never expires because the machine is slow.
 * `launchpadFile` replaces the launch platform's program. With PLATFORM_PROGRAMS, the sandbox runs
 * the platform's own programs. With `feesOnCoins`, what an account has
 * in its vaults waits on two coins instead, from when `account` first returns it: moving the fees
 * of all accounts takes half a second.
 */
export async function startTestSandbox({
  launchpadFile,
  feesOnCoins = false,
  ...options
}: {
  launchpadFile?: string;
  feesOnCoins?: boolean;
  blocksToFinality?: number | undefined;
} = {}) {
  const standstill = createStandstill();
  const sandbox = await startSandbox({
    ...{ slotMs: 0, rpcPort: 0, socialPort: 0 },
    platformPrograms: process.env.PLATFORM_PROGRAMS || undefined,
    now: standstill.now,
    ...options,
  });
  const { chain, env } = sandbox;
  if (launchpadFile) chain.svm.addProgramFromFile(toKeyBytes(LAUNCHPAD_PROGRAM_ID), launchpadFile);
  /** Those that `account` has returned, by handle. */
  const returned = new Map<string, SandboxAccount>();
  const { handle } = sandbox.rpc;
  const rpc = withRpcFaults(sandbox.rpc);
  const social = withFaults(sandbox.social, ({ url }) => ({
    path: url.pathname,
    /** The requested handles or ids. */
    names: (url.searchParams.get("usernames") ?? url.searchParams.get("ids"))?.split(",") ?? [],
  }));
  const secondRpc = withRpcFaults(await createLoopbackServer({ port: 0, handle }));
  const timer = setInterval(() => {
    const newest = chain.ledger().at(-1);
    if (newest && newest.slot > chain.slot("finalized")) chain.advanceSlots(1);
  }, SLOT_MS);

  function account(handle: string): SandboxAccount {
    const earlier = returned.get(handle);
    if (earlier) return earlier;
    const found = sandbox.accounts.find((candidate) => candidate.handle === handle);
    if (!found) throw new Error(`the sandbox has no ${handle}`);
    const account = feesOnCoins ? moveFeesToCoins(sandbox, found) : found;
    returned.set(handle, account);
    return account;
  }

  /** The landed collects, successful or not. */
  const landedCollects = () =>
    chain
      .ledger()
      .filter(({ logs }) => logs.some((line) => line.includes(`${LAUNCHPAD_PROGRAM_ID} invoke`)));

  return {
    ...sandbox,
    rpc,
    social,
    /** Another JSON-RPC endpoint of the same chain. */
    secondRpc,
    account,
    /** Stops the chain until the returned function is called. */
    standStill: () => standstill.standStill(chain),
    /** The fee payer's address. */
    feePayer: Keypair.fromSecretKey(
      Uint8Array.from(JSON.parse(env.FEE_PAYER_KEYPAIR) as number[]),
    ).publicKey.toBase58(),
    landedCollects,
    /** The landed collects of one account. */
    landedCollectsOf(handle: string) {
      const { creatorVault } = account(handle);
      return landedCollects().filter(({ message }) =>
        message.accountKeys.some((key) => key === creatorVault),
      );
    },
    async close() {
      clearInterval(timer);
      await Promise.all([sandbox.close(), secondRpc.close()]);
    },
  };
}

/**
 * Moves the fees in an account's creator vault to the curve of a new coin and the pool of another,
 * half each.
 */
function moveFeesToCoins({ chain, coins }: Sandbox, account: SandboxAccount): SandboxAccount {
  const { creatorVault, ammVault, address } = account;
  const rent = chain.rentExemptMinimum(0);
  const fees = chain.balance(creatorVault) - rent;
  if (fees <= 0n || account.coins.length > 0) return account;
  chain.setBalance(creatorVault, rent);
  // So that no sweep has to pay for it.
  if (!chain.account(ammVault)) setWrappedSol(chain, account.ammVaultAuthority, 0n);
  const [onCurve, inPool] = [newMint(), newMint()];
  coins.launch({ mint: onCurve, creator: address, fees: fees / 2n });
  coins.launch({ mint: inPool, creator: address });
  coins.migrate(inPool, fees - fees / 2n);
  return { ...account, coins: [onCurve, inPool].map(coins.addressesOf) };
}

/** Whether a call uses one of these JSON-RPC methods. */
export const isMethod =
  (...names: string[]) =>
  (call: { readonly method: string }) =>
    names.includes(call.method);

/** A look at the outcome of a sent transaction. */
export const isLook = isMethod("getTransaction", "getSignatureStatuses");

/**
 * A read of accounts, rather than of only the clock, which silent endpoints get in the background.
 */
export const isAccountsRead = ({
  method,
  params,
}: {
  method: string;
  params: readonly unknown[];
}) => method === "getMultipleAccounts" && (params as [string[]])[0].length > 1;

/** A read of this account. */
export const isReadOf =
  (address: string) =>
  ({ method, params }: { readonly method: string; readonly params: readonly unknown[] }) =>
    method === "getMultipleAccounts" && (params as [string[]])[0].includes(address);

/** Delays the answers to matching calls until the returned function is called. */
export function hold<Call>(
  server: FaultyServer<Call>,
  when: (call: Call) => boolean = () => true,
): () => void {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const remove = server.faults.add({ when, until: promise });
  return () => {
    remove();
    resolve(undefined);
  };
}

/** Runs `act` when the next matching call arrives, before it is answered. */
export function onNext<Call>(
  server: FaultyServer<Call>,
  when: (call: Call) => boolean,
  act: () => void,
): void {
  server.faults.add({
    times: 1,
    when(call) {
      if (!when(call)) return false;
      act();
      return true;
    },
  });
}
