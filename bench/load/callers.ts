import { Agent, request } from "undici";
import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { COLLECTED, COLLECTS, ERROR, GRAPHQL, LOOKUP, NOTHING, WALLETS } from "./answers.ts";

/** Callers' addresses: few enough for some of them to meet the rate limit. */
const CALLERS = 4_000;
/** Far longer than the gateway lets anyone wait. */
const NO_ANSWER_MS = 60_000;

const LOOKUP_CODES = [
  "SOCIAL_RATE_LIMITED",
  "SOCIAL_API_UNAVAILABLE",
  "SERVICE_BUSY",
  "LOOKUP_FAILED",
  "RATE_LIMITED",
] as const satisfies ErrorCode[];
const COLLECT_CODES = ["COLLECT_FAILED", "RATE_LIMITED"] as const satisfies ErrorCode[];

/** What a caller was told of a collect that succeeded. */
export interface Told {
  readonly socialId: string;
  readonly collected: string;
  readonly newBalance: string;
  readonly txSignature: string;
}

/** One answer, in the words of the contract: "200", or an error's code. */
type Outcome = string;

interface Answer {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly body: unknown;
}

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
const unknownHandle = () => `nobody${Math.floor(Math.random() * 1e6)}`;
const unknownId = () => String(10n ** 18n + BigInt(Math.floor(Math.random() * 1e9)));

/** Callers from thousands of addresses, who hold every answer against the contract. */
export function createCallers(url: string, accounts: readonly SandboxAccount[]) {
  const agent = new Agent({ headersTimeout: NO_ANSWER_MS, bodyTimeout: NO_ANSWER_MS });
  const byHandle = new Map(accounts.map((account) => [account.handle, account]));
  const outcomes = new Map<string, Map<Outcome, number>>();
  const told: Told[] = [];
  const deadSignatures: string[] = [];
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

  /** The code of an error of REST, which has its status, and `Retry-After` when there is something to wait for. */
  function errorOf({ status, retryAfter, body }: Answer, allowed: readonly ErrorCode[]): Outcome {
    const { error } = ERROR.parse(body);
    expect(allowed.includes(error), `${error} is no answer to this`);
    expect(status === ERROR_CODES[error].status, `${error} with ${status}`);
    expect(
      ![429, 503].includes(status) || error === "SOCIAL_API_UNAVAILABLE" || Number(retryAfter) >= 1,
      "no Retry-After",
    );
    return error;
  }

  function checkWallet({ handle, socialId, address }: Omit<z.infer<typeof LOOKUP>, "balance">): void {
    const account = byHandle.get(handle);
    expect(account?.id === socialId && account.address === address, `a wrong wallet of ${handle}`);
  }

  function noteFailure(text: string): void {
    const dead = /^Transaction (\w+) did not land/.exec(text)?.[1];
    if (dead) deadSignatures.push(dead);
  }

  /** The codes of an operation's errors, each of which has its place in the data; RATE_LIMITED has refused all of it. */
  function codesOf({ status, body }: Answer, allowed: readonly ErrorCode[]): readonly ErrorCode[] {
    const { errors = [] } = GRAPHQL.parse(body);
    const codes = errors.map(({ extensions }) => extensions.code);
    expect(
      codes.every((each) => allowed.includes(each)),
      `${codes.join()} are no answers to this`,
    );
    if (status === 429) expect(codes.join() === "RATE_LIMITED", `429 with ${codes.join()}`);
    else
      expect(status === 200 && errors.every(({ path }) => path), `an error without its place, or ${status}`);
    for (const { message } of errors) noteFailure(message);
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
      expect(wallet.handle === handle, `asked for ${handle}, told of ${wallet.handle}`);
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
      expect(wallets.length === handles.length, `${wallets.length} wallets for ${handles.length} handles`);
      for (const [i, wallet] of wallets.entries()) {
        if (wallet) checkWallet(wallet);
        expect(!wallet || wallet.handle === handles[i], "a wallet at another's place");
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
        expect(answer.status === 400 && allowed.includes("COLLECT_FAILED"), "an empty vault");
        return nothing.data.error;
      }
      if (answer.status !== 200) {
        noteFailure(ERROR.parse(answer.body).message);
        return errorOf(answer, allowed);
      }
      told.push({ ...COLLECTED.parse(answer.body), socialId: socialId as string });
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
        if (result.success) told.push({ ...COLLECTED.parse(withoutNulls(result)), socialId: ids[name] });
        else NOTHING.parse(withoutNulls(result));
      }
      return codes[0] ?? "200";
    },
  };

  /** Makes one call of that kind, and counts what came of it. */
  async function callOnce(kind: keyof typeof kinds): Promise<void> {
    let outcome: Outcome;
    try {
      outcome = await kinds[kind]();
    } catch (error) {
      outcome = "WRONG";
      const what = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
      problems.push(`${kind}: ${what}`);
    }
    const counts = outcomes.get(kind) ?? new Map<Outcome, number>();
    outcomes.set(kind, counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
  }

  return {
    /** Calls one after another until `isOver`. */
    async keepCalling(kind: keyof typeof kinds, isOver: () => boolean): Promise<void> {
      while (!isOver()) await callOnce(kind);
    },
    /** By kind of call: how often each outcome came. */
    outcomes,
    told,
    /** Of transactions that callers were told can no longer land. */
    deadSignatures,
    problems,
    close: () => agent.close(),
  };
}

function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
}

function expect(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(otherwise);
}
