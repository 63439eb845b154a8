import type { Logger } from "../../observability/log.ts";
import { toWideBlock } from "../../fairness/budget.ts";
import type { MonotonicTime } from "../../time/monotonic.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import type { Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { ReadUnits, Unit } from "../units/units.ts";
import type { Payers } from "./fee-budget.ts";

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
   * The end user's address block; differs from `addressBlock` behind a trusted caller. A
   * transaction includes only coins that one end user's block named. Failures of these coins count
   * against that block, unless it is undefined.
   */
  readonly visitorBlock: string | undefined;
}

/** A request that has a unit's turn. `read`: undefined if it joined before it read. */
export interface Member {
  readonly request: Request;
  readonly read?: ReadUnits;
}

/** A request that waits for one of its units. */
export interface Waiter extends Member {
  readonly unit: Unit;
  readonly read: ReadUnits;
}

/** Who has a unit's turn. */
export interface Turn {
  readonly members: Set<Member>;
  /** The members' address blocks: one of them pays. */
  readonly payers: Payers;
  /** The account's coins that the members name; none for a turn without coins. */
  readonly coins: ReadonlyMap<string, CoinAddresses>;
  /** Whether another flight has ended since the members' reads. */
  readonly isLater: boolean;
  /** Whose read shows what to collect. */
  readonly leader: Waiter;
}

/** The most coins of a turn. One read has room for their keys and the account's own. */
const MAX_COINS = 19;

/** Returns the account's coins that a unit sweeps, by mint. */
export const coinsOf = ({ kind, sweeps }: Unit): ReadonlyMap<string, CoinAddresses> =>
  new Map(kind === "own" ? sweeps.map(({ coin }) => [coin.mint, coin]) : []);

export const blockOf = ({ request: { caller } }: Member): string =>
  caller.visitorBlock ?? caller.addressBlock;

/**
 * Chooses who has the next turn. The first row that applies decides:
 *
 * | Requests that wait  | Next turn                                                            |
 * | ------------------- | -------------------------------------------------------------------- |
 * | without coins       | all of these                                                         |
 * | with coins          | those of the block with the fewest turns, in the /32 with the fewest |
 * | none                | none                                                                 |
 *
 * `counts`: how many turns each block, and each IPv6 /32, has had.
 */
export function nextTurn(
  waiters: readonly Waiter[],
  counts: ReadonlyMap<string, number>,
  isLater: boolean,
): Turn | undefined {
  const plain = waiters.filter(({ unit }) => coinsOf(unit).size === 0);
  const countOf = (block: string) => counts.get(block) ?? 0;
  const countOfWide = (block: string) => countOf(toWideBlock(block) ?? block);
  const blocks = waiters
    .map(blockOf)
    .toSorted((a, b) => countOfWide(a) - countOfWide(b) || countOf(a) - countOf(b));
  const some = plain.length > 0 ? plain : waiters.filter((each) => blockOf(each) === blocks[0]);
  const coins = new Map<string, CoinAddresses>();
  const members = some.filter(({ unit }) => {
    const own = coinsOf(unit);
    const hasRoom = new Set([...coins.keys(), ...own.keys()]).size <= MAX_COINS;
    for (const [mint, coin] of hasRoom ? own : []) coins.set(mint, coin);
    return hasRoom;
  });
  const [leader] = members.toSorted(byAmount);
  const payers: Payers = new Map(
    members.map(({ request }) => [request.caller.addressBlock, undefined]),
  );
  return leader && { members: new Set(members), payers, coins, isLater, leader };
}

export function addTo({ members, payers }: Turn, member: Member): void {
  const { addressBlock } = member.request.caller;
  members.add(member);
  if (!payers.has(addressBlock)) payers.set(addressBlock, undefined);
}

/** Whether a transaction that moves so much is worth it for any member: one may have joined. */
export const isWorthwhile = ({ members }: Turn, movedAmount: Lamports): boolean =>
  [...members].some(({ request }) => movedAmount >= request.minimum);

/** Returns the accounts that asked for a transaction, each once. */
export function accountsOf(turn: Turn | undefined, account: AccountAddresses): AccountAddresses[] {
  const accounts = [...(turn?.members ?? [])].map(({ request }) => request.account);
  return [...new Map([account, ...accounts].map((each) => [each.address, each])).values()];
}

/** The account whose share is largest leads a distribution. */
const byAmount = (a: Waiter, b: Waiter): number => {
  const [one = 0n, other = 0n] = [a.unit.sweeps[0]?.amount, b.unit.sweeps[0]?.amount];
  return one < other ? 1 : one > other ? -1 : 0;
};
