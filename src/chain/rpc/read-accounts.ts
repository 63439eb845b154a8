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
interface Found {
  readonly accounts: Accounts;
  readonly slot: number;
  readonly rent: Rent;
}

/**
 * A read of groups of accounts. A group is identified by its index; its accounts are in the order
 * of its addresses.
 */
export interface AccountsRead {
  /**
   * The base58 addresses of each group. All groups are read in one call, so they may have {@link
   * MAX_KEYS_PER_CALL} different addresses.
   */
  readonly groups: readonly (readonly string[])[];
  /** How many bytes of each account's data are needed, from its start. */
  readonly bytes: number;
  /** Receives a group's accounts. Returns whether they are new enough; if not, reads them again. */
  readonly take: (index: number, found: Found) => boolean;
  /** The oldest slot that is accepted for a group at this time; 0 for any. */
  readonly minSlotOf?: (index: number) => number;
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
 * Reads accounts in groups. One call reads all accounts, so that those of a group are consistent.
 * An account in several groups is read once.
 */
export function createReadAccounts(needs: { failover: Failover; callEndpoint: CallEndpoint }) {
  const { failover, callEndpoint } = needs;

  /**
   * Passes each group's accounts to `take`, in any order. Rejects with {@link RpcError} if a group
   * is not taken until the timeout.
   */
  return async ({ groups, bytes, take, minSlotOf = () => 0 }: AccountsRead): Promise<void> => {
    const method = "getMultipleAccounts";
    const length = Math.max(bytes, CLOCK_BYTES);
    /** The groups that are not taken yet, by index. */
    const open = new Map(groups.entries());
    // The lowest slot of all groups: a group must not fail because another one needs a newer slot.
    const minSlot = () => Math.min(...open.keys().map(minSlotOf));

    const readAt: Attempt<void> = async (endpoint, signal) => {
      const keys = [...new Set([SYSVARS, ...open.values()].flat())];
      const options = {
        ...FINALIZED,
        minContextSlot: minSlot(),
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
      // Another endpoint may have answered in the meantime.
      for (const [index, ofGroup] of open) {
        const accounts = ofGroup.map((key) => byKey.get(key));
        if (take(index, { accounts, slot: context.slot, rent })) open.delete(index);
      }
      if (open.size > 0) throw new RpcError("slot", method, endpoint.host);
    };

    await failover.call("reads", readAt, { minSlot });
  };
}
