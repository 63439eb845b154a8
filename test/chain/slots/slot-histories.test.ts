import { afterEach, expect, it, vi } from "vitest";
import {
  createEndpointRanking,
  type EndpointRanking,
} from "../../../src/chain/rpc/endpoint-ranking.ts";
import {
  toEndpoints,
  type CallEndpoint,
  type Endpoint,
} from "../../../src/chain/rpc/rpc-endpoint.ts";
import { isOfSlot, RpcError } from "../../../src/chain/rpc/rpc-error.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../../../src/chain/slots/clock.ts";
import { createFloors } from "../../../src/chain/slots/floors.ts";
import type { State } from "../../../src/chain/slots/progress.ts";
import { createLogger } from "../../../src/observability/log.ts";

/*
 * Random histories of endpoints against a simulated chain, in simulated time. `read` tries
 * endpoints as the failover does: in the ranking's order, all of them again until the timeout.
 */

const HISTORIES = 1_000;
const FIRST_SLOT = 1_000_000;
const HISTORY_MS = 60_000;
const TIMEOUT_MS = 5_000;
const CATCH_UP_MS = 300;
const TRIES_AT_BEST = 6;
/**
 * An answer is true if its state was at most this old when endpoints were last asked: an idle
 * service makes no calls.
 */
const TRUE_MS = 15_000 + 1_000;
/**
 * What cannot be told from the truth before the chain's rate is known: five seconds of ten slots,
 * and the lookup's own time.
 */
const SLACK = 53;
/** Far from 0, and not a full second. */
const STARTED_AT = 1_795_000_000_400;

type Random = () => number;
/** Mulberry32. */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** How an endpoint is; a liar claims slots or times that are not its own. */
const HONEST = ["right", "behind", "frozen", "jumping", "silent"] as const;
const LIARS = ["wrong once", "ratchet", "lead", "jump ahead", "false clock", "true clock"] as const;
type Kind = (typeof HONEST)[number] | (typeof LIARS)[number];
const isLiar = (kind: Kind) => LIARS.some((liar) => liar === kind);

interface Simulated {
  readonly kind: Kind;
  readonly endpoint: Endpoint;
  /** What it answers, or undefined while it does not. */
  readonly answer: () => State | undefined;
}

const SIGNAL = new AbortController().signal;
const toClock = (ms: number | undefined) => {
  if (ms === undefined) return null;
  const data = Buffer.alloc(CLOCK_BYTES);
  data.writeBigInt64LE(BigInt(ms / 1_000), CLOCK_BYTES - 8);
  return { data };
};
const URLS = ["http://first", "http://second", "http://third"].map((url) => new URL(url));
const log = createLogger("silent");

let time = 0;
let ranking: EndpointRanking;
// Shared, because it allocates its memory at the start; each history has accounts of its own.
const floors = createFloors({
  newestSlot: () => ranking.newestSlot(),
  takeSlot(slot) {
    ranking.takeSlot(slot);
  },
});

afterEach(() => {
  vi.restoreAllMocks();
});

async function play(seed: number, slotsPerSecond: number): Promise<string | undefined> {
  const random = createRandom(seed);
  const between = (least: number, most: number) => least + random() * (most - least);
  const oneOf = <T>(some: readonly T[]) => some[Math.floor(random() * some.length)]!;
  const slotsIn = (ms: number) => Math.floor((ms / 1_000) * slotsPerSecond);
  time = 0;

  // The chain may be rolled back once.
  const rollbackAt = random() < 0.1 ? between(15_000, 40_000) : Infinity;
  const rolledBackBy = Math.floor(between(50, 2_000));
  const slotAt = (ms: number) => FIRST_SLOT + slotsIn(ms) - (ms >= rollbackAt ? rolledBackBy : 0);
  const changesEvery = Math.floor(between(3, 60));
  const amountIn = (slot: number) =>
    Math.floor(slot / changesEvery) + (time >= rollbackAt ? 0.5 : 0);
  // The cluster's clock is not exact, and shows full seconds.
  const offBy = between(-3_000, 3_000);
  const clockAt = (ms: number) => Math.floor((STARTED_AT + ms + offBy) / 1_000) * 1_000;

  function createEndpoint(kind: Kind, i: number): Simulated {
    const lagMs = between(0, 1_000);
    const fault = { from: between(0, HISTORY_MS), behindMs: between(21_000, 800_000) };
    const lead = Math.floor(between(20, 3_000));
    let answers = 0;
    /** The true state of `ms`. */
    const stateAt = (ms: number): State => ({
      slot: slotAt(ms - lagMs),
      clock: clockAt(ms - lagMs),
    });
    const aheadBy = (slots: number) => {
      const { slot, clock } = stateAt(time);
      return { slot: slot + slots, clock };
    };
    const answer: Record<Kind, () => State | undefined> = {
      right: () => stateAt(time),
      behind: () => stateAt(time - fault.behindMs),
      frozen: () => stateAt(Math.min(time, fault.from)),
      jumping: () => stateAt(time - (random() < 0.2 ? fault.behindMs : 0)),
      silent: () => (time < fault.from ? stateAt(time) : undefined),
      "wrong once"() {
        if (answers > 0 || time < fault.from) return stateAt(time);
        answers++;
        return aheadBy(oneOf([40, 400, 4_000, 10 ** 12]));
      },
      // As fast as slots may be, and a little less than what counts as a jump with each answer.
      ratchet: () => aheadBy(++answers * 7 + slotsIn(time)),
      lead: () => aheadBy(lead),
      "jump ahead": () => aheadBy(time < fault.from ? 0 : oneOf([lead, 10 ** 6, 10 ** 12])),
      "false clock": () => ({
        slot: aheadBy(lead).slot,
        clock: clockAt(time + oneOf([-60_000, 5_000, 3_600_000])),
      }),
      // It pairs what is new with an invented slot, without a clock.
      "true clock": () => ({ slot: aheadBy(lead).slot }),
    };
    return { kind, endpoint: endpointsOf[i]!, answer: answer[kind] };
  }
  const count = 1 + Math.floor(random() * 3);
  const endpointsOf = toEndpoints(URLS.slice(0, count));
  const others = ["behind", "frozen", "silent"] as const;
  // Half of the histories have an endpoint that is right. One endpoint of several lies, never the
  // preferred one.
  const isWithRight = random() < 0.5;
  const liarAt = count > 1 && random() < 0.5 ? 1 + Math.floor(random() * (count - 1)) : undefined;
  const rightAt = Math.floor(random() * count);
  const kinds = endpointsOf.map((_, i): Kind => {
    if (i === liarAt) return oneOf(LIARS);
    if (isWithRight && i === rightAt) return "right";
    return oneOf(isWithRight ? others : HONEST);
  });
  const simulated = kinds.map(createEndpoint);
  const of = (endpoint: Endpoint) => simulated.find((each) => each.endpoint === endpoint)!;
  /** Before the liar, so that it is never needed. */
  const isRightBeforeLiar =
    isWithRight && kinds.indexOf("right") < (liarAt ?? Infinity) && kinds.includes("right");
  const liesMatter = liarAt !== undefined && !isRightBeforeLiar;

  const callEndpoint = ((endpoint: Endpoint, method: string) => {
    if (method === "getGenesisHash") return Promise.resolve("genesis");
    const state = of(endpoint).answer();
    if (!state) return Promise.reject(new RpcError("unreachable", method, endpoint.host));
    return Promise.resolve({ context: { slot: state.slot }, value: [toClock(state.clock)] });
  }) as CallEndpoint;
  ranking = createEndpointRanking({
    endpoints: endpointsOf,
    callEndpoint,
    rpcTimeoutMs: TIMEOUT_MS,
    log,
  });
  const shown = new Map<string, { slot: number; amount: number }>();

  /**
   * The slot of the state that was shown, and whose it was; undefined if none was in time; or what
   * is wrong.
   */
  async function read(account: string): Promise<{ slot: number; kind: Kind } | undefined | string> {
    const endsAt = time + TIMEOUT_MS;
    const amountsIn = (slot: number) => [[account, [amountIn(slot)]]] as const;
    for (let tries = 1; time < endsAt; tries++) {
      for (const endpoint of ranking.inOrder()) {
        const slot = await ranking
          .callEndpoint(endpoint, "getMultipleAccounts", [[CLOCK_SYSVAR]], SIGNAL)
          .then(
            ({ context }) => context.slot,
            (error: unknown) => {
              ranking.failed(endpoint, error);
              return error as RpcError;
            },
          );
        const isBehind =
          slot instanceof RpcError ? isOfSlot(slot) : !floors.take(slot, amountsIn(slot));
        // The failover waits for the best endpoint.
        if (isBehind && tries <= TRIES_AT_BEST && ranking.isBest(endpoint)) break;
        if (isBehind || slot instanceof RpcError) continue;
        const amount = amountIn(slot);
        ranking.succeeded(endpoint);
        const { kind } = of(endpoint);
        const before = shown.get(account);
        if (
          before &&
          slot < before.slot &&
          amount !== before.amount &&
          before.slot <= ranking.newestSlot()
        )
          return `shows ${amount} of slot ${slot} after ${before.amount} of slot ${before.slot}`;
        if (!before || slot >= before.slot || before.slot > ranking.newestSlot())
          shown.set(account, { slot, amount });
        if (!isLiar(kind) && slot > slotAt(time) + SLACK && time < rollbackAt)
          return `shows slot ${slot} at slot ${slotAt(time)}`;
        ranking.check();
        return { slot, kind };
      }
      time += tries === 1 ? 1 : CATCH_UP_MS;
    }
    return undefined;
  }

  await ranking.readClusters();
  await ranking.readClusters();
  const accounts = ["a", "b", "c"].map((name) => `${name}${seed} ${slotsPerSecond}`);
  let lastTrueAt = 0;
  let askedAt = 0;
  /** When a lookup first meets the chain that was rolled back. */
  let rolledBackAt = -Infinity;
  let announcedLieAt = -Infinity;
  while (time < HISTORY_MS) {
    const pause = random() < 0.02 ? between(5_000, 15_000) : 0;
    time += pause + between(50, 2_500);
    lastTrueAt += pause;
    rolledBackAt += pause;
    announcedLieAt += pause;
    if (rolledBackAt === -Infinity && time >= rollbackAt) rolledBackAt = time;
    // Another replica has collected an account: what it announces is true, or a lie of one of its
    // endpoints.
    if (random() < 0.05) {
      const lie = random() < 0.3 ? oneOf([40, 140, 4_000, 10 ** 12]) : 0;
      if (lie > 0) announcedLieAt = time;
      const account = oneOf(accounts);
      floors.require(account, slotAt(time) + lie);
      // What nobody has reached any more is forgotten.
      if (shown.has(account) && shown.get(account)!.slot > ranking.newestSlot())
        shown.delete(account);
    }
    const startedAt = time;
    const result = await read(oneOf(accounts));
    // The checks that the read has started.
    for (let i = 0; i < 20; i++) await Promise.resolve();
    const describe = () =>
      `history ${seed} at ${slotsPerSecond} slots/s, ${kinds.join(", ")}, ms ${startedAt}, rollback at ${rollbackAt}`;
    if (typeof result === "string") return `${describe()}: ${result}`;
    // What was shown before a rollback, or announced by a lie, is above what is right, and is
    // looked for elsewhere.
    const isAboveRight = time < Math.max(rolledBackAt, announcedLieAt) + 15_000;
    if (result && isLiar(result.kind) && kinds[0] === "right" && !isAboveRight)
      return `${describe()}: the liar is used, although the preferred endpoint is right`;
    const isTrue = result !== undefined && result.slot >= slotAt(askedAt) - slotsIn(TRUE_MS);
    askedAt = time;
    if (isTrue) lastTrueAt = time;
    const since = Math.max(lastTrueAt, rolledBackAt, announcedLieAt);
    if (!isWithRight || liesMatter || startedAt - since <= 10_000) continue;
    if (!isTrue && time - startedAt >= TIMEOUT_MS)
      return `${describe()}: no true answer since ${since}`;
    if (result !== undefined && !isTrue)
      return `${describe()}: slot ${result.slot} is shown at slot ${slotAt(time)}`;
  }
  return undefined;
}

it.each([2.5, 5, 10])(
  `at %d slots a second, in ${HISTORIES} random histories, no balance goes back or is above the chain, true ones come within 10 s, and a liar is not preferred to an endpoint that is right`,
  async (slotsPerSecond) => {
    vi.spyOn(performance, "now").mockImplementation(() => time);
    vi.spyOn(Date, "now").mockImplementation(() => STARTED_AT + time);
    const problems: string[] = [];
    for (let seed = 1; seed <= HISTORIES && problems.length < 5; seed++) {
      const problem = await play(seed, slotsPerSecond);
      if (problem !== undefined) problems.push(problem);
    }
    expect(problems).toEqual([]);
  },
);
