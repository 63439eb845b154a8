import { z } from "zod";
import { connectionCodeOf } from "../observability/connection-error.ts";
import { isOk, isTimeout, type CallUpstream, type UpstreamAnswer } from "../upstream/http.ts";
import { ownWordsOf } from "../upstream/own-words.ts";
import { parseJson } from "../contract/parse-json.ts";
import {
  ACCOUNT,
  isHandleKey,
  keysOf,
  nameOf,
  type AccountKey,
  type SocialAccount,
} from "./account.ts";
import { secondsUntilReset, type CallQuota } from "./call-quota.ts";
import type { CircuitBreaker } from "./circuit-breaker.ts";
import { PROFILE_FIELDS } from "./profile.ts";
import {
  isBadRequest,
  isOperatorProblem,
  SocialError,
  type SocialFailure,
} from "./social-error.ts";

/** The network's response for each requested key: the account, or why there is none. */
export type SocialAnswers = ReadonlyMap<AccountKey, SocialAccount | SocialError>;

export type SocialClient = ReturnType<typeof createSocialClient>;

/** The network's limit of names or ids per call. */
export const MAX_USERS_PER_CALL = 100;

/** The most extra calls for a batch if the network rejects the format of some of its keys. */
const MAX_EXTRA_CALLS = 16;

const PATHS = { usernames: "/2/users/by?usernames=", ids: "/2/users?ids=" };

/** The account of a row; undefined if it cannot be read. */
const FOUND = z
  .looseObject({ public_metrics: z.looseObject({}).catch({}) })
  .transform(({ id, username, public_metrics, profile_image_url, ...profile }) => {
    const { followers_count: followers } = public_metrics;
    const profileFields = { ...profile, followers, pictureUrl: profile_image_url };
    return ACCOUNT.safeParse({ id, handle: username, profile: profileFields }).data;
  })
  .catch(undefined);
/**
 * The name or id of an account that the network does not have or show; undefined if the row is not
 * of one. Matches only the end of the `type` URL: its host has changed.
 */
const MISSING = z
  .object({
    // The network may omit `value`; `resource_id` then names the account.
    value: z.string().optional(),
    resource_id: z.string().optional(),
    type: z
      .string()
      .regex(
        /\/(resource-not-found|resource-unavailable|not-authorized-for-resource|disallowed-resource)$/,
      ),
  })
  .transform(({ value, resource_id }) => value ?? resource_id)
  .catch(undefined);
const USERS = z.object({ data: z.array(FOUND).nullish(), errors: z.array(MISSING).nullish() });
const PROBLEM = z.object({ type: z.string() });
/** In US dollars. Source: the reference of GET /2/usage/credits. */
const CREDITS = z.object({ data: z.object({ total_balance: z.number() }) });

/**
 * A client for v2 of the network's API, with an app-only bearer token. A lookup makes one call, or
 * a few more when the network rejects the format of a key.
 */
export function createSocialClient(needs: {
  socialApiUrl: URL;
  /** All calls and retries for one batch share this time. */
  socialTimeoutMs: number;
  token: string;
  circuitBreaker: Pick<CircuitBreaker, "call" | "refusal">;
  quota: CallQuota;
  callUpstream: CallUpstream;
}) {
  const { circuitBreaker, quota, callUpstream } = needs;
  const newDeadline = () => AbortSignal.timeout(needs.socialTimeoutMs);
  const base = needs.socialApiUrl.href.replace(/\/$/, "");
  const common = {
    upstream: "social",
    headers: { authorization: `Bearer ${needs.token}`, accept: "application/json" },
  } as const;

  /**
   * Keeps only the last part of the problem's type, because the rest of the body must not reach the
   * log. A firewall answers 403 with a page.
   */
  function toError({ status, headers, text }: UpstreamAnswer, words?: string): SocialError {
    const type =
      status === 403 && /^\s*</.test(text)
        ? "blocked"
        : PROBLEM.safeParse(parseJson(text)).data?.type;
    const problem = /[a-z-]{1,40}$/.exec(type ?? "")?.[0] ?? "";
    const failure: SocialFailure = { kind: "refused", status, problem, words };
    if (status !== 429 || isOperatorProblem(failure)) return new SocialError(failure);
    return new SocialError({ kind: "rate-limited", retryAfterSeconds: secondsUntilReset(headers) });
  }

  async function get(
    keys: readonly AccountKey[],
    signal: AbortSignal,
    method?: string,
  ): Promise<z.infer<typeof USERS> | SocialError> {
    const by = keys.every(isHandleKey) ? "usernames" : "ids";
    const url = `${base}${PATHS[by]}${keys.map(nameOf).join()}&user.fields=${PROFILE_FIELDS}`;
    const call = { ...common, method: method ?? `users by ${by}`, url, signal };
    const read = (answer: UpstreamAnswer) => {
      quota.record(by, answer.headers);
      if (!isOk(answer.status))
        throw toError(answer, method && ownWordsOf(answer.text, [needs.token]));
      const users = USERS.safeParse(parseJson(answer.text));
      if (!users.success) throw unreadable(users.error);
      return users.data;
    };
    return callUpstream(call, read).catch((cause: unknown) => {
      if (cause instanceof SocialError) return cause;
      const failure: SocialFailure = isTimeout(cause)
        ? { kind: "timeout" }
        : { kind: "unreachable", code: connectionCodeOf(cause) };
      return new SocialError(failure, cause);
    });
  }

  /**
   * Looks up `keys`. If the network rejects the format of a key, splits the batch in half to
   * isolate that key.
   */
  async function find(
    keys: readonly AccountKey[],
    limits = { deadline: newDeadline(), extraCalls: MAX_EXTRA_CALLS },
  ): Promise<SocialAnswers> {
    const users = await circuitBreaker.call(() => get(keys, limits.deadline));
    if (!(users instanceof SocialError)) return match(keys, users);
    if (!isBadRequest(users) || keys.length === 1 || limits.extraCalls < 2)
      return new Map(keys.map((key) => [key, users]));
    limits.extraCalls -= 2;
    const middle = Math.ceil(keys.length / 2);
    const [first, second] = [keys.slice(0, middle), keys.slice(middle)];
    return new Map([...(await find(first, limits)), ...(await find(second, limits))]);
  }

  return {
    /**
     * Resolves when the call quota allows the next call; undefined if there is nothing to wait for.
     */
    turn: () => (circuitBreaker.refusal() ? undefined : quota.turn()),

    /** The account or error of each of up to 100 keys, which are all handles or all ids. */
    find: (keys: readonly AccountKey[]) => find(keys),

    /**
     * The credit that is left, in US dollars. Undefined if the network does not say: it does not
     * have this path for all projects.
     */
    async credit(): Promise<number | undefined> {
      const url = `${base}/2/usage/credits`;
      const read = ({ text }: UpstreamAnswer) =>
        CREDITS.safeParse(parseJson(text)).data?.data.total_balance;
      const call = { ...common, method: "credits", url, signal: newDeadline() };
      return callUpstream(call, read).catch(() => undefined);
    },

    /**
     * Why the network refuses calls, if it does. Asks for an invalid name: the network charges only
     * for accounts.
     */
    async check(): Promise<SocialError | undefined> {
      const users = await circuitBreaker.call(() => get(["@-"], newDeadline(), "check"));
      return users instanceof SocialError && !isBadRequest(users) ? users : undefined;
    },
  };
}

/** Matches each key with the only row of its name or id. Skips unreadable rows. */
function match(
  keys: readonly AccountKey[],
  { data, errors }: z.infer<typeof USERS>,
): SocialAnswers {
  return new Map(
    keys.map((key) => {
      const found = (data ?? []).filter((account) => account && keysOf(account).includes(key));
      const missing = (errors ?? []).filter((name) => name?.toLowerCase() === nameOf(key));
      const [answer = new SocialError({ kind: "not-found" })] = found;
      if (found.length + missing.length === 1) return [key, answer];
      return [key, unreadable(new Error("not one readable row for a requested account"))];
    }),
  );
}

function unreadable(cause: Error): SocialError {
  return new SocialError({ kind: "unreadable" }, cause);
}
