import type { Target } from "./target.ts";

/** A request that costs the gateway more than its caller. */
export interface Attack {
  /** The row of the table in SECURITY.md. */
  readonly name: string;
  /** Called once, before the first request. */
  readonly prepare?: (target: Target) => Promise<unknown>;
  /** Sends one request; resolves when the gateway has ended its work for it. */
  readonly send: (target: Target) => Promise<unknown>;
}

/** The CPU time of one request. */
export interface Price {
  readonly ms: number;
  /** As a multiple of a lookup's in the same minute, so that it does not depend on the machine. */
  readonly lookups: number;
}

const WARM_UP_LOOKUPS = 500;
const WARM_UP_REQUESTS = 3;
const LOOKUPS = 50;

const lookUp = ({ send }: Target) => send("/wallet/lookup?handle=creator");

const repeat = (count: number, run: () => Promise<unknown>) =>
  Promise.all(Array.from({ length: count }, run));

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Lets V8 optimize what a lookup runs. */
export async function warmUp(target: Target): Promise<void> {
  await repeat(WARM_UP_LOOKUPS, () => lookUp(target));
}

/** Plays an attack, and in turns with it lookups of a cached name, one at a time. `requests`: how many in a round. */
export async function priceOf(
  attack: Attack,
  target: Target,
  { rounds, requests }: { rounds: number; requests: number },
): Promise<Price> {
  async function cpuOf(run: () => Promise<unknown>): Promise<number> {
    const before = await target.cpuMs();
    await run();
    return (await target.cpuMs()) - before;
  }
  await attack.prepare?.(target);
  await repeat(WARM_UP_REQUESTS, () => attack.send(target));
  const prices: Price[] = [];
  for (let round = 0; round < rounds; round++) {
    const measuring = await cpuOf(() => Promise.resolve());
    const lookups = (await cpuOf(() => repeat(LOOKUPS, () => lookUp(target)))) - measuring;
    const attacks = (await cpuOf(() => repeat(requests, () => attack.send(target)))) - measuring;
    const ms = Math.max(attacks, 0) / requests;
    prices.push({ ms, lookups: (ms * LOOKUPS) / lookups });
  }
  return { ms: median(prices.map(({ ms }) => ms)), lookups: median(prices.map(({ lookups }) => lookups)) };
}
