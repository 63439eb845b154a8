import type { Logger } from "../../observability/log.ts";
import { toWideBlock } from "../../fairness/budget.ts";
import type { MonotonicTime } from "../../time/monotonic.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { ReadUnits, Unit } from "../units/units.ts";

/** One caller's request for an account's fees. */
export interface Request {
  readonly account: AccountAddresses;
  readonly coins: readonly CoinAddresses[];
  /** If no transaction would move as much for the account, none is sent. */
  readonly minimum: Lamports;
  readonly caller: CollectCaller;
  readonly askedAt: MonotonicTime;
  readonly log: Logger;
}

export interface CollectCaller {
  /** The address block whose share of the fee budget pays. */
  readonly addressBlock: string;
  /**
   * The end user's address block; differs from `addressBlock` behind a trusted caller. Failures of
   * the coins that it names count against it, unless it is undefined.
   */
  readonly visitorBlock: string | undefined;
}

/** A request that waits for one of its units. */
export interface Waiter {
  readonly request: Request;
  readonly unit: Unit;
  readonly read: ReadUnits;
}

/** Who has a unit's turn. */
export interface Turn {
  readonly members: readonly Waiter[];
  /** The members' address blocks, each once: one of them pays. */
  readonly blocks: readonly string[];
  /** Whose read shows what to collect: of a distribution, the one with the largest share. */
  readonly leader: Waiter;
}

/** Whether a request waits for a transaction with coins that only its account receives. */
export const hasCoins = ({ unit: { kind, sweeps } }: Waiter): boolean =>
  kind === "own" && sweeps.length > 0;

/** Returns a request's /32 of IPv6, if it has one, and its block. */
function blocksOf({ request: { caller } }: Waiter): [wide: string, block: string] {
  const block = caller.visitorBlock ?? caller.addressBlock;
  return [toWideBlock(block) ?? block, block];
}

/**
 * Chooses who has the next turn. The first row that applies decides:
 *
 * | Requests that wait  | Next turn                                                                     |
 * | ------------------- | ----------------------------------------------------------------------------- |
 * | without coins       | all of these                                                                  |
 * | with coins          | the first of the block with the fewest turns, in the /32 of IPv6 with the     |
 * |                     | fewest                                                                        |
 * | none                | none                                                                          |
 *
 * `counts`: how many turns with coins each block, and each /32, has had. Counts the next one.
 */
export function nextTurn(
  waiters: readonly Waiter[],
  counts: Map<string, number>,
): Turn | undefined {
  const countOf = (block: string) => counts.get(block) ?? 0;
  const plain = waiters.filter((each) => !hasCoins(each));
  if (plain.length > 0) {
    const blocks = new Set(plain.map(({ request }) => request.caller.addressBlock));
    const leader = plain.reduce((most, each) => (each.unit.gain > most.unit.gain ? each : most));
    return { members: plain, blocks: [...blocks], leader };
  }
  const [leader] = waiters.toSorted((a, b) => {
    const [[wideA, blockA], [wideB, blockB]] = [blocksOf(a), blocksOf(b)];
    return countOf(wideA) - countOf(wideB) || countOf(blockA) - countOf(blockB);
  });
  if (!leader) return undefined;
  for (const block of new Set(blocksOf(leader))) counts.set(block, countOf(block) + 1);
  return { members: [leader], blocks: [leader.request.caller.addressBlock], leader };
}

/** Returns the accounts that asked for a transaction, each once. */
export function accountsOf(turn: Turn | undefined, account: AccountAddresses): AccountAddresses[] {
  const accounts = (turn?.members ?? []).map(({ request }) => request.account);
  return [...new Map([account, ...accounts].map((each) => [each.address, each])).values()];
}
