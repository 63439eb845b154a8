import { LRUCache } from "lru-cache";
import { ContractError } from "../errors.ts";
import type { SocialAccount } from "./account.ts";
import { MAX_USERS_A_CALL, type SocialAnswers, type SocialClient } from "./client.ts";

/** The account, or the contract's error for what was asked. */
type Answer = SocialAccount | ContractError;

export type Directory = ReturnType<typeof createDirectory>;

const MAX_CACHED_HANDLES = 100_000;
const MAX_NOT_FOUND_SECONDS = 60;
const SERVICE_BUSY_RETRY_AFTER_SECONDS = 30;

interface Waiting {
  readonly answer: Promise<Answer>;
  readonly resolve: (answer: Answer) => void;
}

/** One of the network's two look-up calls, and what waits for it: first in, first out, each key once. */
interface Queue {
  readonly ask: (keys: readonly string[]) => Promise<SocialAnswers>;
  readonly known: LRUCache<string, Answer> | undefined;
  readonly waiting: Map<string, Waiting>;
  /** The keys of the calls under way. */
  readonly asked: Map<string, Waiting>;
}

/**
 * Finds accounts on the social network with as few calls as can be: a lookup on an idle service leaves at
 * once; while `concurrency` calls are under way what arrives gathers, and leaves in calls of up to 100.
 * Equal keys are asked once. Beyond `queueMax` waiting keys the newest are answered SERVICE_BUSY.
 *
 * A handle's account is believed for `cacheSeconds`, "no such account" for 60 s at most, failures never.
 * An account found by its id is not kept: the id stays, but its handle may change.
 */
export function createDirectory(needs: {
  client: SocialClient;
  concurrency: number;
  queueMax: number;
  cacheSeconds: number;
}) {
  const { client, concurrency, queueMax, cacheSeconds } = needs;
  const known = new LRUCache<string, Answer>({ max: MAX_CACHED_HANDLES, perf: performance });
  const byHandle: Queue = { ask: client.findByHandles, known, waiting: new Map(), asked: new Map() };
  const byId: Queue = { ask: client.findByIds, known: undefined, waiting: new Map(), asked: new Map() };
  let callsUnderWay = 0;

  /** The answers for `keys`, in their order. */
  function find(queue: Queue, keys: readonly string[]): Promise<Answer[]> {
    const added: string[] = [];
    const answers = keys.map(async (key) => {
      const cached = queue.known?.get(key);
      if (cached) return cached;
      const joined = queue.asked.get(key) ?? queue.waiting.get(key);
      if (joined) return joined.answer;
      const { promise, resolve } = Promise.withResolvers<Answer>();
      queue.waiting.set(key, { answer: promise, resolve });
      added.push(key);
      return promise;
    });
    send();
    refuseExcess(queue, added);
    return Promise.all(answers);
  }

  /** Those that have just come are refused, the last first, and the ones that wait keep their places. */
  function refuseExcess(queue: Queue, added: string[]): void {
    while (byHandle.waiting.size + byId.waiting.size > queueMax) {
      const key = added.pop();
      if (key === undefined) return;
      queue.waiting
        .get(key)
        ?.resolve(new ContractError("SERVICE_BUSY", { retryAfterSeconds: SERVICE_BUSY_RETRY_AFTER_SECONDS }));
      queue.waiting.delete(key);
    }
  }

  function send(): void {
    for (const queue of [byHandle, byId]) {
      while (callsUnderWay < concurrency && queue.waiting.size > 0) void sendOne(queue);
    }
  }

  async function sendOne(queue: Queue): Promise<void> {
    const batch = [...queue.waiting].slice(0, MAX_USERS_A_CALL);
    for (const [key, waiting] of batch) {
      queue.waiting.delete(key);
      queue.asked.set(key, waiting);
    }
    callsUnderWay++;
    const answers = await queue.ask(batch.map(([key]) => key)).catch((error: unknown) => error as Error);
    callsUnderWay--;
    for (const [key, { resolve }] of batch) {
      const answer = answers instanceof Error ? toContractError(answers) : answers.get(key)!;
      remember(queue, key, answer);
      queue.asked.delete(key);
      resolve(answer);
    }
    send();
  }

  function remember(queue: Queue, key: string, answer: Answer): void {
    const isError = answer instanceof ContractError;
    if (isError && answer.code !== "SOCIAL_NOT_FOUND") return;
    const seconds = isError ? Math.min(cacheSeconds, MAX_NOT_FOUND_SECONDS) : cacheSeconds;
    if (seconds > 0) queue.known?.set(key, answer, { ttl: seconds * 1000 });
  }

  return {
    /** The accounts of handles, in whatever case. */
    findByHandles: (handles: readonly string[]) =>
      find(
        byHandle,
        handles.map((handle) => handle.toLowerCase()),
      ),

    /** The accounts of canonical ids. */
    findByIds: (ids: readonly string[]) => find(byId, ids),
  };
}

function toContractError(error: Error): ContractError {
  return error instanceof ContractError
    ? error
    : new ContractError("SOCIAL_API_UNAVAILABLE", { cause: error });
}
