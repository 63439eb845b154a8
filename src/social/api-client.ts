import { z } from "zod";
import { ContractError, toRetryAfterSeconds } from "../contract/errors.ts";
import { parseJson } from "../upstream/parse-json.ts";
import type { Logger } from "../observability/log.ts";
import { isOk, type CallUpstream, type UpstreamAnswer } from "../upstream/http.ts";
import { toSocialId, type SocialAccount } from "./account.ts";
import { isRefusedForForm, Refusal, type Guard } from "./circuit-breaker.ts";

/** The network's answer for each key asked for: the account, or why there is none. */
export type SocialAnswers = ReadonlyMap<string, SocialAccount | ContractError>;

export type SocialClient = ReturnType<typeof createSocialClient>;

/** The most names or ids that one call takes. */
export const MAX_USERS_A_CALL = 100;

/** Calls that one batch may cost more when names in it are refused for their form. */
const MAX_EXTRA_CALLS = 16;

/** When a 429 names no reset that can be read. */
const DEFAULT_RETRY_AFTER_SECONDS = 60;
/** The network's own window; a reset further away is a mistake. */
const MAX_RETRY_AFTER_SECONDS = 900;

const PATHS = { usernames: "/2/users/by?usernames=", ids: "/2/users?ids=" };

const USERS = z.object({ data: z.array(z.unknown()).optional(), errors: z.array(z.unknown()).optional() });
/**
 * An id that is written otherwise than canonically is unreadable: what it means is anyone's guess. So is a
 * name with other letters, some of which are ASCII's in lower case: the sign of Kelvin is a k.
 */
const USER = z.object({
  id: z.string().refine((id) => toSocialId(id) === id),
  username: z.string().regex(/^\w+$/),
});
/** A suspended account comes with this type too. The host in it has changed before. */
const MISSING = z.object({ value: z.string(), type: z.string().endsWith("/resource-not-found") });
const PROBLEM = z.object({ type: z.string() });

/**
 * The network's API, v2, with an app-only bearer token: one upstream call a method call, of up to 100
 * keys, made through `guard`. Each key gets its own answer; a call that fails as a whole throws.
 *
 * @throws {ContractError} SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE
 */
export function createSocialClient(needs: {
  apiUrl: URL;
  token: string;
  guard: Guard;
  callUpstream: CallUpstream;
  log: Logger;
}) {
  const { guard, callUpstream, log } = needs;
  const base = needs.apiUrl.href.replace(/\/$/, "");
  const headers = { authorization: `Bearer ${needs.token}`, accept: "application/json" };

  async function get(method: string, path: string, signal: AbortSignal): Promise<z.infer<typeof USERS>> {
    const read = (answer: UpstreamAnswer) => {
      const body = parseJson(answer.text);
      if (!isOk(answer.status)) throw refusal(answer, body);
      const users = USERS.safeParse(body);
      if (!users.success) throw unreadable(users.error);
      return users.data;
    };
    try {
      return await callUpstream({ upstream: "social", method, url: base + path, headers, signal }, read);
    } catch (cause) {
      throw cause instanceof ContractError ? cause : new ContractError("SOCIAL_API_UNAVAILABLE", { cause });
    }
  }

  /** Asks for `keys`; when the network refuses them for their form, for each half alone, to find the one it means. */
  async function find(
    by: "usernames" | "ids",
    keys: readonly string[],
    keyOf: (account: SocialAccount) => string,
    limits = { deadline: guard.newDeadline(), extraCalls: MAX_EXTRA_CALLS },
  ): Promise<SocialAnswers> {
    try {
      const path = PATHS[by] + keys.join(",");
      const users = await guard.call((signal) => get(`users by ${by}`, path, signal), limits.deadline);
      return match(keys, users, keyOf);
    } catch (error) {
      if (!isRefusedForForm(error) || keys.length === 1 || limits.extraCalls < 2) throw error;
      limits.extraCalls -= 2;
      const middle = Math.ceil(keys.length / 2);
      const answers = new Map<string, SocialAccount | ContractError>();
      for (const half of [keys.slice(0, middle), keys.slice(middle)]) {
        const found = await find(by, half, keyOf, limits).catch((reason: unknown) =>
          failAll(half, reason as ContractError),
        );
        for (const [key, answer] of found) answers.set(key, answer);
      }
      return answers;
    }
  }

  /** Turns a status that is not 2xx into the contract's code, and tells the operator what only they can mend. */
  function refusal({ status, headers }: UpstreamAnswer, body: unknown): ContractError {
    // The last part of the type's path names the problem; the rest of a body has no place in a log.
    const type = /[a-z-]{1,40}$/.exec(PROBLEM.safeParse(body).data?.type ?? "")?.[0] ?? "";
    const cause = new Refusal(status, type);
    if (status === 401 || status === 402 || status === 403 || type === "usage-capped") {
      log.error(
        { status, type },
        status === 401
          ? "the social network refuses SOCIAL_API_TOKEN: lookups fail until it is replaced and the service restarted"
          : "the social network refuses this service's app: its credit is used up or its access withdrawn; see the network's developer console",
      );
      return new ContractError("SOCIAL_API_UNAVAILABLE", { cause });
    }
    if (status === 429) {
      const retryAfterSeconds = secondsUntilReset(headers);
      return new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds, cause });
    }
    return new ContractError("SOCIAL_API_UNAVAILABLE", { cause });
  }

  return {
    /** The accounts of up to 100 lower-case handles. */
    findByHandles: (handles: readonly string[]) =>
      find("usernames", handles, ({ handle }) => handle.toLowerCase()),

    /**
     * Whether the network takes this service's calls. Asks for a name that nobody can have, so that nobody
     * is found, which is what costs.
     */
    async answers(): Promise<boolean> {
      try {
        await get("check", `${PATHS.usernames}-`, guard.newDeadline());
        return true;
      } catch (error) {
        return isRefusedForForm(error);
      }
    },

    /** The accounts of up to 100 ids. */
    findByIds: (ids: readonly string[]) => find("ids", ids, ({ id }) => id),
  };
}

function failAll(keys: readonly string[], error: ContractError): SocialAnswers {
  return new Map(keys.map((key) => [key, error]));
}

/** Gives each key the one account, or the one error, that the answer has for it. What cannot be read is left out. */
function match(
  keys: readonly string[],
  { data = [], errors = [] }: z.infer<typeof USERS>,
  keyOf: (account: SocialAccount) => string,
): SocialAnswers {
  const answers = new Map<string, SocialAccount | ContractError>();
  const add = (key: string, answer: SocialAccount | ContractError) =>
    answers.set(key, answers.has(key) ? unreadable(new Error("two answers for one account")) : answer);

  for (const row of errors) {
    const missing = MISSING.safeParse(row).data;
    if (missing) add(missing.value.toLowerCase(), new ContractError("SOCIAL_NOT_FOUND"));
  }
  for (const row of data) {
    const user = USER.safeParse(row).data;
    if (!user) continue;
    const account = { id: user.id, handle: user.username };
    add(keyOf(account), account);
  }
  const none = () => unreadable(new Error("no readable answer for an account that was asked for"));
  return new Map(keys.map((key) => [key, answers.get(key) ?? none()]));
}

function unreadable(cause: Error): ContractError {
  return new ContractError("SOCIAL_API_UNAVAILABLE", { cause });
}

function secondsUntilReset(headers: UpstreamAnswer["headers"]): number {
  const reset = headers["x-rate-limit-reset"];
  if (typeof reset !== "string" || !/^\d+$/.test(reset)) return DEFAULT_RETRY_AFTER_SECONDS;
  return Math.min(toRetryAfterSeconds(Number(reset) * 1000 - Date.now()), MAX_RETRY_AFTER_SECONDS);
}
