import { z } from "zod";
import { formatSol, toLamports } from "../../src/chain/primitives/lamports.ts";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import {
  assert,
  errorOf,
  errorsOf,
  HISTORY,
  LOOKUP,
  WALLETS,
  type NAMED_COIN,
  type WALLET,
} from "./answers.ts";
import { createClient, type Call } from "./client.ts";
import { createCollects, dataOf } from "./collects.ts";
import type { Problems } from "./problems.ts";
import type { System } from "./system.ts";
import type { Truth } from "./truth.ts";

const LOOKUP_CODES = [
  "SOCIAL_RATE_LIMITED",
  "SOCIAL_API_UNAVAILABLE",
  "SERVICE_BUSY",
  "LOOKUP_FAILED",
  "RATE_LIMITED",
] as const satisfies ErrorCode[];
const WRONG_HANDLE = ["SOCIAL_NOT_FOUND", "INVALID_HANDLE"] as const satisfies ErrorCode[];
/** The fraction of batches that name a coin with shared fees. */
const NAMING_A_COIN = 0.5;
const ALL_BPS = 10_000;

export type Callers = ReturnType<typeof createCallers>;

/** Creates callers that check every response against the contract and the timeline. */
export function createCallers(system: System, truth: Truth, problems: Problems) {
  const { accounts, sharedCoins, random } = system;
  const { pick, pickBusy } = random;
  const client = createClient(system);
  const { newCall, send, isRare, chooseMints } = client;
  const collects = createCollects(system, client, truth);
  const unknownHandle = () => `nobody${random.below(1e6)}`;
  const byHandle = new Map(accounts.map((account) => [account.handle, account]));
  /**
   * The count of each outcome, by kind of call. An outcome is "200", an error code, "no answer"
   * from a killed replica, or "WRONG" for a response that violates the contract.
   */
  const outcomes = new Map<string, Map<string, number>>();

  /**
   * An account's share of a coin's fees, in basis points; 0 if the coin pays other accounts only.
   */
  function shareBpsOf({ address, coins }: SandboxAccount, mint: string): number {
    const shared = sharedCoins.find(({ coin }) => coin.mint === mint);
    if (!shared) return coins.some((coin) => coin.mint === mint) ? ALL_BPS : 0;
    return shared.shareholders.find((each) => each.address === address)?.bps ?? 0;
  }

  function checkWallet(
    wallet: z.infer<typeof WALLET> & { coins?: readonly z.infer<typeof NAMED_COIN>[] | undefined },
    call: Call,
    mints: readonly string[],
  ): void {
    const account = byHandle.get(wallet.handle);
    assert(
      account?.id === wallet.socialId && account.address === wallet.address,
      `wrong wallet for ${wallet.handle}`,
    );
    const { coins = [] } = wallet;
    assert(
      mints.length === new Set(coins.map(({ mint }) => mint)).size,
      "other coins than the request names",
    );
    for (const { mint, shareBps } of coins)
      assert(
        mints.includes(mint) && shareBps === shareBpsOf(account, mint),
        "a coin with a wrong share",
      );
    const { vault, pda, total } = wallet.balance;
    const fits = (fees: bigint, atAddress: bigint) =>
      vault === sol(fees) && pda === sol(atAddress) && total === sol(fees + atAddress);
    const reasons = coins.map(({ reason }) => reason ?? "counted").join();
    truth.checkBalance(account, call, mints, fits, `${vault} + ${pda} = ${total} (${reasons})`);
  }

  const kinds = {
    ...collects.kinds,

    async lookup() {
      const handle = isRare()
        ? unknownHandle()
        : isRare()
          ? "no%20handle"
          : pickBusy(accounts).handle;
      const call = newCall();
      const account = byHandle.get(handle);
      const mints = account ? chooseMints(account) : [];
      const named = mints.map((mint) => `&mint=${mint}`).join("");
      const answer = await send(call, `/wallet/lookup?handle=${handle}${named}`);
      if (!answer) return "no answer";
      if (answer.status !== 200)
        return errorOf(answer, [...LOOKUP_CODES, ...(account ? [] : WRONG_HANDLE)]).code;
      const wallet = LOOKUP.parse(answer.body);
      assert(wallet.handle === handle, `requested ${handle}, received ${wallet.handle}`);
      assert(
        (wallet.coins !== undefined) === mints.length > 0,
        "coins only for a request that names them",
      );
      checkWallet(wallet, call, mints);
      return "200";
    },

    async wallets() {
      const handles = Array.from({ length: 1 + random.below(40) }, () => pickBusy(accounts).handle);
      if (isRare()) handles.push(unknownHandle());
      const mints =
        sharedCoins.length > 0 && random.isChosen(NAMING_A_COIN)
          ? [pick(sharedCoins).coin.mint]
          : [];
      const query =
        "query ($handles: [String!]!, $mints: [String!]!) { wallets(handles: $handles) { handle socialId address balance(mints: $mints) { vault pda total } coins(mints: $mints) { mint shareBps reason } } }";
      const call = newCall();
      const answer = await send(call, "/graphql", { query, variables: { handles, mints } });
      if (!answer) return "no answer";
      const errors = errorsOf(answer, ["SOCIAL_NOT_FOUND", ...LOOKUP_CODES]);
      if (answer.status !== 200) return "RATE_LIMITED";
      const { wallets } = WALLETS.parse(dataOf(answer));
      assert(
        wallets.length === handles.length,
        `${wallets.length} wallets for ${handles.length} handles`,
      );
      for (const [i, wallet] of wallets.entries()) {
        assert(!wallet || wallet.handle === handles[i], "wallets in the wrong order");
        if (wallet?.balance && wallet.coins)
          checkWallet({ ...wallet, balance: wallet.balance, coins: wallet.coins }, call, mints);
      }
      return errors.find(({ code }) => code !== "SOCIAL_NOT_FOUND")?.code ?? "200";
    },

    async history() {
      const account = pickBusy(accounts);
      const query =
        "query ($id: String!) { walletById(socialId: $id) { history { nodes { kind lamports signature } } } }";
      const call = newCall();
      const answer = await send(call, "/graphql", { query, variables: { id: account.id } });
      if (!answer) return "no answer";
      const [error] = errorsOf(answer, ["SERVICE_BUSY", "LOOKUP_FAILED", "RATE_LIMITED"]);
      if (error) return error.code;
      const { nodes } = HISTORY.parse(dataOf(answer)).walletById!.history!;
      truth.checkHistory(account, call, nodes);
      return "200";
    },
  };

  /** Counts the outcome of a call, and records a problem if the answer is wrong. */
  async function count(kind: string, run: () => Promise<string>): Promise<string> {
    let outcome = "WRONG";
    try {
      outcome = await run();
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = error instanceof z.ZodError ? z.prettifyError(error) : message;
      problems.add(`${kind}: ${reason}`, typeof cause === "string" ? cause : "");
    }
    const counts = outcomes.get(kind) ?? new Map<string, number>();
    outcomes.set(kind, counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
    return outcome;
  }

  return {
    /** Makes calls of one kind, one after another, until `isOver`. */
    async keepCalling(kind: keyof typeof kinds, isOver: () => boolean): Promise<void> {
      while (!isOver()) await count(kind, kinds[kind]);
    },
    /** Collects for one account at one replica; returns the outcome. */
    collect: (account: SandboxAccount, replica: number) =>
      count("last collects", () => collects.collectAll(account, replica)),
    outcomes,
    collects: collects.calls,
    close: client.close,
  };
}

const sol = (lamports: bigint) => formatSol(toLamports(lamports));
