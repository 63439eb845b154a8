import type { ErrorCode } from "../../src/contract/error-codes.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import {
  assert,
  COLLECTED,
  COLLECTS,
  errorOf,
  errorsOf,
  GRAPHQL,
  MANY_COLLECTS,
  NOTHING,
  NOTHING_IN_GRAPHQL,
  type Answer,
  type CollectResult,
} from "./answers.ts";
import type { Call, Client } from "./client.ts";
import type { System } from "./system.ts";
import type { Truth } from "./truth.ts";

const COLLECT_CODES = [
  "COLLECT_FAILED",
  "INSUFFICIENT_FUNDS",
  "RATE_LIMITED",
] as const satisfies ErrorCode[];
/** The fraction of collects that name coins whose distribution fails. */
const NAMING_FAILING_COINS = 0.2;
const FIELDS = `{ success collected newBalance txSignature error message
  left { mint amount lamports reason } lastCollects { collected newBalance txSignature at } }`;

/** A request to collect an account's fees, recorded for the audit after the run. */
export interface CollectCall extends Call {
  readonly account: SandboxAccount;
  /** The mints in the request. */
  readonly mints: readonly string[];
  /** When the answer arrived, in milliseconds since 1970. */
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
  | { readonly kind: "nothing"; readonly message: string }
  | { readonly kind: "error"; readonly code: ErrorCode; readonly message: string }
  /** No answer arrived, because the replica was killed. */
  | { readonly kind: "lost" };

/** Creates callers that collect fees and record the answers. */
export function createCollects(
  { accounts, sharedCoins, failingCoins, random }: System,
  { newCall, newCollect, send, isRare, chooseMints }: Client,
  truth: Truth,
) {
  const { pick, pickBusy } = random;
  /** The mints of the failing coins of which the account is a shareholder. */
  const failingMintsOf = ({ address }: SandboxAccount): string[] =>
    failingCoins
      .filter(({ shareholders }) => shareholders.some((each) => each.address === address))
      .map(({ coin }) => coin.mint);
  const unknownId = () => String(10n ** 18n + BigInt(random.below(1e9)));
  const calls: CollectCall[] = [];

  function record(
    account: SandboxAccount | undefined,
    call: Call,
    answer: CollectAnswer,
    mints: readonly string[],
  ): string {
    if (account) {
      if (answer.kind === "collected") truth.reported(account.id, answer.txSignature);
      if (answer.kind === "nothing") truth.checkNothing(account, call, mints, answer.message);
      calls.push({ ...call, account, mints, end: Date.now(), answer });
    }
    if (answer.kind === "error") return answer.code;
    return { collected: "200", nothing: "NOTHING_TO_COLLECT", lost: "no answer" }[answer.kind];
  }

  /**
   * Collects for several accounts in one mutation. `keys` are the accounts' keys in the results and
   * in the paths of errors. Returns the first account's outcome.
   */
  async function mutate<Key extends PropertyKey>(
    accounts: readonly SandboxAccount[],
    keys: readonly Key[],
    operation: { readonly query: string; readonly variables: object },
    readResults: (data: unknown) => Readonly<Record<Key, CollectResult | null>> | null,
    mints: readonly string[] = [],
  ): Promise<string> {
    const call = newCall();
    const answer = await send(call, "/graphql", operation);
    const results = answer?.status === 200 ? readResults(dataOf(answer)) : null;
    const errors = answer ? errorsOf(answer, COLLECT_CODES) : [];
    const outcomes = accounts.map((account, i) => {
      const key = keys[i]!;
      const result = results?.[key];
      if (result?.success) {
        const collected = COLLECTED.parse(withoutNulls(result));
        return record(account, call, { kind: "collected", ...collected }, mints);
      }
      const nothing = result && NOTHING_IN_GRAPHQL.parse(withoutNulls(result));
      const error = errors.find(({ path }) => answer?.status === 429 || path?.includes(key));
      return record(
        account,
        call,
        nothing ? { kind: "nothing", message: nothing.message } : (error ?? { kind: "lost" }),
        mints,
      );
    });
    return outcomes[0]!;
  }

  async function collectOne(
    socialId: unknown,
    account: SandboxAccount | undefined,
    call: Call,
    mints: readonly string[] = [],
  ): Promise<string> {
    const answer = await send(call, "/collect", { socialId, ...(mints.length > 0 && { mints }) });
    if (!answer) return record(account, call, { kind: "lost" }, mints);
    const nothing = NOTHING.safeParse(answer.body);
    if (nothing.success) {
      assert(answer.status === 400, `NOTHING_TO_COLLECT with status ${answer.status}`);
      return record(account, call, { kind: "nothing", message: nothing.data.message }, mints);
    }
    if (answer.status !== 200) {
      const allowed = typeof socialId === "string" && socialId !== "" ? COLLECT_CODES : [];
      const error = errorOf(answer, [...allowed, "INVALID_SOCIAL_ID", "RATE_LIMITED"]);
      return record(account, call, error, mints);
    }
    return record(account, call, { kind: "collected", ...COLLECTED.parse(answer.body) }, mints);
  }

  return {
    calls: calls as readonly CollectCall[],

    /** Collects all fees of an account, at one replica. */
    collectAll: (account: SandboxAccount, replica: number) =>
      collectOne(
        account.id,
        account,
        newCall(replica),
        account.coins.map(({ mint }) => mint),
      ),

    kinds: {
      async collect() {
        if (isRare()) return collectOne(unknownId(), undefined, newCall());
        if (isRare()) return collectOne(pick([12, "", null]), undefined, newCall());
        const account = pickBusy(accounts);
        const strangers = random.isChosen(NAMING_FAILING_COINS) ? failingMintsOf(account) : [];
        return collectOne(account.id, account, newCollect(account), [
          ...chooseMints(account),
          ...strangers,
        ]);
      },

      collects() {
        const picked = [pickBusy(accounts), pickBusy(accounts)] as const;
        const query = `mutation ($one: String!, $other: String!) { one: collect(socialId: $one) ${FIELDS} other: collect(socialId: $other) ${FIELDS} }`;
        const variables = { one: picked[0].id, other: picked[1].id };
        return mutate(picked, ["one", "other"], { query, variables }, (data) =>
          COLLECTS.parse(data),
        );
      },

      /** Collects for several shareholders of one coin. */
      collectMany() {
        const { coin } = pick(sharedCoins);
        const sharing = accounts.filter(({ coins }) => coins.includes(coin));
        const some = sharing.filter(() => random.isChosen(0.7));
        const picked = some.length > 1 ? some : sharing;
        const query = `mutation ($collects: [CollectInput!]!) { collectMany(collects: $collects) ${FIELDS} }`;
        const mints = [coin.mint];
        const variables = { collects: picked.map(({ id }) => ({ socialId: id, mints })) };
        const readResults = (data: unknown) => MANY_COLLECTS.parse(data).collectMany;
        return mutate(picked, [...picked.keys()], { query, variables }, readResults, mints);
      },
    },
  };
}

export const dataOf = ({ body }: Answer) => GRAPHQL.parse(body).data;

function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
}
