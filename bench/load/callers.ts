import { Agent, request } from "undici";
import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { COLLECTED, COLLECTS, ERROR, GRAPHQL, LOOKUP, NOTHING, WALLETS } from "./answers.ts";

/** The number of client addresses. Small enough that some exceed the rate limit. */
const CALLERS = 4_000;
/** Far longer than any timeout of the gateway. */
const TIMEOUT_MS = 60_000;

const LOOKUP_CODES = [
  "SOCIAL_RATE_LIMITED",
  "SOCIAL_API_UNAVAILABLE",
  "SERVICE_BUSY",
  "LOOKUP_FAILED",
  "RATE_LIMITED",
] as const satisfies ErrorCode[];
const COLLECT_CODES = ["COLLECT_FAILED", "RATE_LIMITED"] as const satisfies ErrorCode[];

/** A successful collect, as its response reports it. */
export interface ReportedCollect {
  readonly socialId: string;
  readonly collected: string;
  readonly newBalance: string;
  readonly txSignature: string;
}

/** "200" or the error's code; "WRONG" for a response that violates the contract. */
type Outcome = string;

interface Answer {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly body: unknown;
}

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
const unknownHandle = () => `nobody${Math.floor(Math.random() * 1e6)}`;
const unknownId = () => String(10n ** 18n + BigInt(Math.floor(Math.random() * 1e9)));

/** Callers from thousands of addresses that check every response against the contract. */
export function createCallers(url: string, accounts: readonly SandboxAccount[]) {
  const agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  const byHandle = new Map(accounts.map((account) => [account.handle, account]));
  const outcomes = new Map<string, Map<Outcome, number>>();
  const reported: ReportedCollect[] = [];
  const expiredSignatures: string[] = [];
  const problems: string[] = [];

  async function call(path: string, body?: object): Promise<Answer> {
    const caller = Math.floor(Math.random() * CALLERS);
    const answer = await request(url + path, {
      dispatcher: agent,
      method: body ? "POST" : "GET",
      headers: {
        "x-forwarded-for": `10.9.${caller >> 8}.${caller & 255}`,
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return {
      status: answer.statusCode,
      retryAfter: answer.headers["retry-after"],
      body: await answer.body.json(),
    };
  }

  /** The code of a REST error; checks its status and its `Retry-After`. */
  function errorOf({ status, retryAfter, body }: Answer, allowed: readonly ErrorCode[]): Outcome {
    const { error } = ERROR.parse(body);
    assert(allowed.includes(error), `unexpected ${error}`);
    assert(status === ERROR_CODES[error].status, `${error} with status ${status}`);
    assert(
      ![429, 503].includes(status) || error === "SOCIAL_API_UNAVAILABLE" || Number(retryAfter) >= 1,
      `${error} without Retry-After`,
    );
    return error;
  }

  function checkWallet({ handle, socialId, address }: Omit<z.infer<typeof LOOKUP>, "balance">): void {
    const account = byHandle.get(handle);
    assert(account?.id === socialId && account.address === address, `wrong wallet for ${handle}`);
  }

  function recordExpired(message: string): void {
    const signature = /^Transaction (\w+) did not land/.exec(message)?.[1];
    if (signature) expiredSignatures.push(signature);
  }

  /** The codes of an operation's errors. Each error has a path, except RATE_LIMITED, which fails the request. */
  function codesOf({ status, body }: Answer, allowed: readonly ErrorCode[]): readonly ErrorCode[] {
    const { errors = [] } = GRAPHQL.parse(body);
    const codes = errors.map(({ extensions }) => extensions.code);
    assert(
      codes.every((each) => allowed.includes(each)),
      `unexpected error among ${codes.join()}`,
    );
    if (status === 429) assert(codes.join() === "RATE_LIMITED", `429 with ${codes.join()}`);
    else
      assert(
        status === 200 && errors.every(({ path }) => path),
        `an error without path, or status ${status}`,
      );
    for (const { message } of errors) recordExpired(message);
    return codes;
  }
  const dataOf = ({ body }: Answer) => GRAPHQL.parse(body).data;

  const kinds = {
    async lookup() {
      const [handle, allowed] = pick<() => [string, ErrorCode[]]>([
        () => [unknownHandle(), ["SOCIAL_NOT_FOUND", ...LOOKUP_CODES]],
        () => ["no%20handle", ["INVALID_HANDLE", "RATE_LIMITED"]],
        ...Array.from(
          { length: 18 },
          () => () => [pick(accounts).handle, [...LOOKUP_CODES]] as [string, ErrorCode[]],
        ),
      ])();
      const answer = await call(`/wallet/lookup?handle=${handle}`);
      if (answer.status !== 200) return errorOf(answer, allowed);
      const wallet = LOOKUP.parse(answer.body);
      assert(wallet.handle === handle, `requested ${handle}, received ${wallet.handle}`);
      checkWallet(wallet);
      return "200";
    },

    async wallets() {
      const handles = Array.from({ length: 1 + Math.floor(Math.random() * 40) }, () => pick(accounts).handle);
      if (Math.random() < 0.1) handles.push(unknownHandle());
      const query =
        "query ($handles: [String!]!) { wallets(handles: $handles) { handle socialId address balance { vault pda total } } }";
      const answer = await call("/graphql", { query, variables: { handles } });
      const codes = codesOf(answer, ["SOCIAL_NOT_FOUND", ...LOOKUP_CODES]);
      if (answer.status !== 200) return "RATE_LIMITED";
      const { wallets } = WALLETS.parse(dataOf(answer));
      assert(wallets.length === handles.length, `${wallets.length} wallets for ${handles.length} handles`);
      for (const [i, wallet] of wallets.entries()) {
        if (wallet) checkWallet(wallet);
        assert(!wallet || wallet.handle === handles[i], "wallets in the wrong order");
      }
      return codes.find((each) => each !== "SOCIAL_NOT_FOUND") ?? "200";
    },

    async collect() {
      const [socialId, allowed] = pick<() => [unknown, ErrorCode[]]>([
        () => [unknownId(), [...COLLECT_CODES]],
        () => [pick([12, "0x1", "", null]), ["INVALID_SOCIAL_ID", "RATE_LIMITED"]],
        ...Array.from(
          { length: 18 },
          () => () => [pick(accounts).id, [...COLLECT_CODES]] as [string, ErrorCode[]],
        ),
      ])();
      const answer = await call("/collect", { socialId });
      const nothing = NOTHING.safeParse(answer.body);
      if (nothing.success) {
        assert(
          answer.status === 400 && allowed.includes("COLLECT_FAILED"),
          `unexpected NOTHING_TO_COLLECT with status ${answer.status}`,
        );
        return nothing.data.error;
      }
      if (answer.status !== 200) {
        recordExpired(ERROR.parse(answer.body).message);
        return errorOf(answer, allowed);
      }
      reported.push({ ...COLLECTED.parse(answer.body), socialId: socialId as string });
      return "200";
    },

    async collects() {
      const ids = { one: pick(accounts).id, other: pick(accounts).id };
      const fields = "{ success collected newBalance txSignature error message }";
      const query = `mutation ($one: String!, $other: String!) { one: collect(socialId: $one) ${fields} other: collect(socialId: $other) ${fields} }`;
      const answer = await call("/graphql", { query, variables: ids });
      const codes = codesOf(answer, COLLECT_CODES);
      if (answer.status !== 200) return "RATE_LIMITED";
      const data = COLLECTS.parse(dataOf(answer));
      for (const name of ["one", "other"] as const) {
        const result = data?.[name];
        if (!result) continue;
        if (result.success) reported.push({ ...COLLECTED.parse(withoutNulls(result)), socialId: ids[name] });
        else NOTHING.parse(withoutNulls(result));
      }
      return codes[0] ?? "200";
    },
  };

  /** Makes one call of `kind` and counts its outcome. */
  async function callOnce(kind: keyof typeof kinds): Promise<void> {
    let outcome: Outcome;
    try {
      outcome = await kinds[kind]();
    } catch (error) {
      outcome = "WRONG";
      const reason = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
      problems.push(`${kind}: ${reason}`);
    }
    const counts = outcomes.get(kind) ?? new Map<Outcome, number>();
    outcomes.set(kind, counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
  }

  return {
    /** Calls one after another until `isOver`. */
    async keepCalling(kind: keyof typeof kinds, isOver: () => boolean): Promise<void> {
      while (!isOver()) await callOnce(kind);
    },
    /** The count of each outcome, by kind of call. */
    outcomes,
    reported,
    /** The transactions that responses reported as expired. */
    expiredSignatures,
    problems,
    close: () => agent.close(),
  };
}

function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
}

function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
