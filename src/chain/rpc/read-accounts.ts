import { decodeRent, RENT_SYSVAR, type Rent } from "../primitives/rent.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../primitives/clock.ts";
import { FINALIZED } from "./commitment.ts";
import type { Failover } from "./failover.ts";
import type { Attempt, CallEndpoint } from "./rpc-endpoint.ts";
import { RpcError } from "./rpc-error.ts";
import type { Account } from "./rpc-results.ts";

/** Accounts in the order of their addresses; undefined for a missing one. */
export type Accounts = readonly (Account | undefined)[];

/** A group's accounts, the slot in which they were read, and the rent rate of that slot. */
export interface Found {
  readonly accounts: Accounts;
  readonly slot: number;
  readonly rent: Rent;
}

/**
 * A read of groups of accounts. A group is identified by its index; its accounts are in the order
 * of its addresses.
 */
export interface AccountsRead {
  /** The base58 addresses of each group. A group's accounts must be read in the same slot. */
  readonly groups: readonly (readonly string[])[];
  /** How many bytes of each account's data are needed, from its start. */
  readonly bytes: number;
  /**
   * Receives a group's accounts. `older`: read them again in a newer slot. `unusable`: they cannot
   * be used, although the endpoint works.
   */
  readonly take: (index: number, found: Found) => "taken" | "older" | "unusable";
  /** The oldest slot that is accepted for a group at this time; 0 for any. */
  readonly minSlotOf?: (index: number) => number;
}

interface Group {
  readonly index: number;
  readonly keys: readonly string[];
}

/** One call: the addresses that it reads, and the groups that need them. */
interface Call {
  readonly keys: Set<string>;
  readonly groups: Group[];
}

/** The limit of `getMultipleAccounts`. */
export const MAX_ACCOUNTS_PER_CALL = 100;

/**
 * Each call reads these accounts first: they show the age of the node's state, and the rent rate.
 */
const SYSVARS = [CLOCK_SYSVAR, RENT_SYSVAR];

/** How many accounts one call can read besides the sysvars. */
export const MAX_KEYS_PER_CALL = MAX_ACCOUNTS_PER_CALL - SYSVARS.length;

/**
 * Reads accounts in groups. One call reads all accounts of a group, so that they are consistent. An
 * account in several groups of a call is read once.
 */
export function createReadAccounts(needs: { failover: Failover; callEndpoint: CallEndpoint }) {
  const { failover, callEndpoint } = needs;

  /**
   * Passes each group's accounts to `take`, in any order. Retries `unusable` groups once at each
   * further endpoint, and `older` groups until the timeout. Rejects with {@link RpcError} if a
   * group is not taken: `account` if all such groups are `unusable`.
   */
  return async ({ groups, bytes, take, minSlotOf = () => 0 }: AccountsRead): Promise<void> => {
    const method = "getMultipleAccounts";
    const length = Math.max(bytes, CLOCK_BYTES);
    /** The groups that are not taken yet. */
    const open = new Map(groups.map((keys, index) => [index, { index, keys }]));
    // The lowest slot of all groups: a group must not fail because another one needs a newer slot.
    const leastSlotOf = (some: Iterable<Group>) =>
      Math.min(...[...some].map(({ index }) => minSlotOf(index)));

    const readAt: Attempt<RpcError | undefined> = async (endpoint, signal) => {
      const refusals = new Set<"older" | "unusable">();

      async function readCall(call: Call): Promise<void> {
        const keys = [...call.keys];
        const options = {
          ...FINALIZED,
          minContextSlot: leastSlotOf(call.groups),
          encoding: "base64",
          dataSlice: { offset: 0, length },
        };
        const { context, value } = await callEndpoint(endpoint, method, [keys, options], signal);
        if (value.length !== keys.length) throw new RpcError("unreadable", method, endpoint.host);
        const byKey = new Map(keys.map((key, i) => [key, value[i] ?? undefined]));
        const rent = decodeRent(byKey.get(RENT_SYSVAR)?.data);
        // If the rent rate is impossible, the whole answer is wrong.
        if (!rent) {
          const cause = new Error("the rent sysvar cannot be true");
          throw new RpcError("unreadable", method, endpoint.host, { cause });
        }
        for (const { index, keys: ofGroup } of call.groups) {
          // Another endpoint may have answered in the meantime.
          if (!open.has(index)) continue;
          const accounts = ofGroup.map((key) => byKey.get(key));
          const result = take(index, { accounts, slot: context.slot, rent });
          if (result === "taken") open.delete(index);
          else refusals.add(result);
        }
      }

      await Promise.all(pack([...open.values()]).map(readCall));
      if (open.size === 0) return undefined;
      if (refusals.has("older")) throw new RpcError("slot", method, endpoint.host);
      return new RpcError("account", method, endpoint.host);
    };

    const unusable = await failover.call("reads", readAt, {
      minSlot: () => leastSlotOf(open.values()),
      isEnough: (error) => error === undefined,
    });
    if (unusable) throw unusable;
  };
}

/** Packs groups, the largest first, each into the first call with room. */
function pack(groups: readonly Group[]): readonly Call[] {
  const calls: Call[] = [];
  for (const group of groups.toSorted((a, b) => b.keys.length - a.keys.length)) {
    const newTo = ({ keys }: Call) => group.keys.filter((key) => !keys.has(key)).length;
    let call = calls.find((each) => each.keys.size + newTo(each) <= MAX_ACCOUNTS_PER_CALL);
    if (!call) calls.push((call = { keys: new Set(SYSVARS), groups: [] }));
    for (const key of group.keys) call.keys.add(key);
    call.groups.push(group);
  }
  return calls;
}
