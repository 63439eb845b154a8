import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { z } from "zod";
import { formatSol, toLamports } from "../../src/chain/lamports.ts";
import type { ErrorCode } from "../../src/contract/error-codes.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import type { WALLET } from "./answers.ts";
import {
  assert,
  COLLECTED,
  COLLECTS,
  errorOf,
  errorsOf,
  GRAPHQL,
  LOOKUP,
  NOTHING,
  WALLETS,
  type Answer,
} from "./answers.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import type { Moment, State } from "./timeline.ts";
import type { Truth } from "./truth.ts";

/** The number of client addresses. Small enough that some exceed the rate limit. */
const CALLERS = 4_000;
/** Far longer than any timeout of the gateway. */
const TIMEOUT_MS = 60_000;
/** The part of lookups and collects of accounts with a coin that name it. */
const NAMING_COINS = 0.5;
/** How long a caller waits when its replica is down. */
const DOWN_MS = 250;

const LOOKUP_CODES = [
  "SOCIAL_RATE_LIMITED",
  "SOCIAL_API_UNAVAILABLE",
  "SERVICE_BUSY",
  "LOOKUP_FAILED",
  "RATE_LIMITED",
] as const satisfies ErrorCode[];
const COLLECT_CODES = ["COLLECT_FAILED", "RATE_LIMITED"] as const satisfies ErrorCode[];

/** A request to collect an account's fees, for the audit after the run. */
export interface CollectCall {
  readonly account: SandboxAccount;
  /** Whether it names the account's coin. */
  readonly withCoin: boolean;
  readonly replica: number;
  readonly start: Moment;
  /** In milliseconds since 1970. */
  readonly end: number;
  readonly answer: CollectAnswer;
}

type CollectAnswer =
  | {
      readonly kind: "collected";
      readonly collected: string;
      readonly newBalance: string;
      readonly txSignature: string;
    }
  | { readonly kind: "nothing" }
  | { readonly kind: "error"; readonly code: ErrorCode; readonly message: string }
  /** The connection broke, because the replica was killed. */
  | { readonly kind: "lost" };

/** "200" or the error's code; "no answer" from a killed replica; "WRONG" for a response that violates the contract. */
type Outcome = string;

type Call = Pick<CollectCall, "replica" | "start">;

export type Callers = ReturnType<typeof createCallers>;

/** Callers from thousands of addresses that check every response against the contract and the timeline. */
export function createCallers(
  { replicas, accounts, timeline, random }: System,
  truth: Truth,
  problems: Problems,
) {
  const { pick, pickBusy } = random;
  const isRare = () => random.isChosen(0.05);
  const unknownHandle = () => `nobody${random.below(1e6)}`;
  const unknownId = () => String(10n ** 18n + BigInt(random.below(1e9)));
  const agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  const byHandle = new Map(accounts.map((account) => [account.handle, account]));
  /** The count of each outcome, by kind of call. */
  const outcomes = new Map<string, Map<Outcome, number>>();
  const collects: CollectCall[] = [];

  const newCall = (replica = random.below(replicas.length)): Call => ({
    replica,
    start: timeline.now(),
  });

  /** Undefined when the replica was killed meanwhile. */
  async function send({ replica, start }: Call, path: string, body?: object): Promise<Answer | undefined> {
    const caller = random.below(CALLERS);
    const { url, down } = replicas[replica]!;
    try {
      const answer = await request(url + path, {
        dispatcher: agent,
        method: body ? "POST" : "GET",
        headers: {
          "x-forwarded-for": `10.9.${caller >> 8}.${caller & 255}`,
          ...(body && { "content-type": "application/json" }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      const { statusCode: status, headers } = answer;
      return { status, retryAfter: headers["retry-after"], body: await answer.body.json() };
    } catch (error) {
      if (!overlaps(down, start.at, Date.now())) throw error;
      await sleep(DOWN_MS);
      return undefined;
    }
  }

  const dataOf = ({ body }: Answer) => GRAPHQL.parse(body).data;

  function checkWallet(
    wallet: z.infer<typeof WALLET> & { coins?: unknown },
    call: Call,
    withCoin = false,
  ): void {
    const account = byHandle.get(wallet.handle);
    assert(
      account?.id === wallet.socialId && account.address === wallet.address,
      `wrong wallet for ${wallet.handle}`,
    );
    assert((wallet.coins !== undefined) === withCoin, "coins only for a request that names them");
    const { vault, pda, total } = wallet.balance;
    function fits(state: State): boolean {
      const fees = withCoin ? state.vaultWithCoin : state.vault;
      return vault === sol(fees) && pda === sol(state.pda) && total === sol(fees + state.pda);
    }
    truth.checkBalance(account, call, fits, `${vault} + ${pda} = ${total}`);
  }

  function record(
    account: SandboxAccount | undefined,
    call: Call,
    answer: CollectAnswer,
    withCoin = false,
  ): Outcome {
    if (account) {
      if (answer.kind === "collected") truth.reported(account.id, answer.txSignature);
      if (answer.kind === "nothing") truth.checkNothing(account, call.start, withCoin);
      collects.push({ ...call, account, withCoin, end: Date.now(), answer });
    }
    if (answer.kind === "error") return answer.code;
    return { collected: "200", nothing: "NOTHING_TO_COLLECT", lost: "no answer" }[answer.kind];
  }

  async function collect(
    socialId: unknown,
    account: SandboxAccount | undefined,
    call: Call,
    withCoin = false,
  ): Promise<Outcome> {
    const mints = withCoin ? account?.coins.map(({ mint }) => mint) : undefined;
    const answer = await send(call, "/collect", { socialId, mints });
    if (!answer) return record(account, call, { kind: "lost" }, withCoin);
    const nothing = NOTHING.safeParse(answer.body);
    if (nothing.success) {
      assert(answer.status === 400, `NOTHING_TO_COLLECT with status ${answer.status}`);
      return record(account, call, { kind: "nothing" }, withCoin);
    }
    if (answer.status !== 200) {
      const allowed = typeof socialId === "string" && socialId !== "" ? COLLECT_CODES : [];
      const error = errorOf(answer, [...allowed, "INVALID_SOCIAL_ID", "RATE_LIMITED"]);
      return record(account, call, error, withCoin);
    }
    return record(account, call, { kind: "collected", ...COLLECTED.parse(answer.body) }, withCoin);
  }

  const kinds = {
    async lookup() {
      const handle = isRare() ? unknownHandle() : isRare() ? "no%20handle" : pickBusy(accounts).handle;
      const call = newCall();
      const [coin] = byHandle.get(handle)?.coins ?? [];
      const withCoin = coin !== undefined && random.isChosen(NAMING_COINS);
      const answer = await send(
        call,
        `/wallet/lookup?handle=${handle}${withCoin ? `&mint=${coin.mint}` : ""}`,
      );
      if (!answer) return "no answer";
      if (answer.status !== 200) {
        const isKnown = byHandle.has(handle);
        return errorOf(answer, [...LOOKUP_CODES, ...(isKnown ? [] : WRONG_HANDLE)]).code;
      }
      const wallet = LOOKUP.parse(answer.body);
      assert(wallet.handle === handle, `requested ${handle}, received ${wallet.handle}`);
      checkWallet(wallet, call, withCoin);
      return "200";
    },

    async wallets() {
      const handles = Array.from({ length: 1 + random.below(40) }, () => pick(accounts).handle);
      if (isRare()) handles.push(unknownHandle());
      const query =
        "query ($handles: [String!]!) { wallets(handles: $handles) { handle socialId address balance { vault pda total } } }";
      const call = newCall();
      const answer = await send(call, "/graphql", { query, variables: { handles } });
      if (!answer) return "no answer";
      const errors = errorsOf(answer, ["SOCIAL_NOT_FOUND", ...LOOKUP_CODES]);
      if (answer.status !== 200) return "RATE_LIMITED";
      const { wallets } = WALLETS.parse(dataOf(answer));
      assert(wallets.length === handles.length, `${wallets.length} wallets for ${handles.length} handles`);
      for (const [i, wallet] of wallets.entries()) {
        assert(!wallet || wallet.handle === handles[i], "wallets in the wrong order");
        if (wallet?.balance) checkWallet({ ...wallet, balance: wallet.balance }, call);
      }
      return errors.find(({ code }) => code !== "SOCIAL_NOT_FOUND")?.code ?? "200";
    },

    async collect() {
      if (isRare()) return collect(unknownId(), undefined, newCall());
      if (isRare()) return collect(pick([12, "", null]), undefined, newCall());
      const account = pickBusy(accounts);
      return collect(
        account.id,
        account,
        newCall(),
        account.coins.length > 0 && random.isChosen(NAMING_COINS),
      );
    },

    async collects() {
      const picked = { one: pickBusy(accounts), other: pickBusy(accounts) };
      const fields = "{ success collected newBalance txSignature error message }";
      const query = `mutation ($one: String!, $other: String!) { one: collect(socialId: $one) ${fields} other: collect(socialId: $other) ${fields} }`;
      const call = newCall();
      const variables = { one: picked.one.id, other: picked.other.id };
      const answer = await send(call, "/graphql", { query, variables });
      const errors = answer ? errorsOf(answer, COLLECT_CODES) : [];
      const data = answer?.status === 200 ? COLLECTS.parse(dataOf(answer)) : undefined;
      return (["one", "other"] as const).map((name) => {
        const result = data?.[name];
        const error = errors.find(({ path }) => path === name || answer?.status === 429);
        if (result?.success)
          return record(picked[name], call, { kind: "collected", ...COLLECTED.parse(withoutNulls(result)) });
        if (result) NOTHING.parse(withoutNulls(result));
        return record(picked[name], call, result ? { kind: "nothing" } : (error ?? { kind: "lost" }));
      })[0]!;
    },
  };

  /** Counts the outcome of a call, and records what is wrong with its answer. */
  async function count(kind: string, run: () => Promise<Outcome>): Promise<Outcome> {
    let outcome: Outcome = "WRONG";
    try {
      outcome = await run();
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = error instanceof z.ZodError ? z.prettifyError(error) : message;
      problems.add(`${kind}: ${reason}`, typeof cause === "string" ? cause : "");
    }
    const counts = outcomes.get(kind) ?? new Map<Outcome, number>();
    outcomes.set(kind, counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
    return outcome;
  }

  return {
    /** Calls one after another until `isOver`. */
    async keepCalling(kind: keyof typeof kinds, isOver: () => boolean): Promise<void> {
      while (!isOver()) await count(kind, kinds[kind]);
    },
    /** Collects one account at one replica; returns "200" or the error's code. */
    collect: (account: SandboxAccount, replica: number) =>
      count("last collects", () => collect(account.id, account, newCall(replica), account.coins.length > 0)),
    outcomes,
    collects: collects as readonly CollectCall[],
    close: () => agent.close(),
  };
}

const WRONG_HANDLE = ["SOCIAL_NOT_FOUND", "INVALID_HANDLE"] as const satisfies ErrorCode[];
const sol = (lamports: bigint) => formatSol(toLamports(lamports));

function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
}
