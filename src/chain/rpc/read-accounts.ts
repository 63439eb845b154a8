import type { Lamports } from "../lamports.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { refusesSize, RpcError } from "./rpc-error.ts";
import { CLOCK_SYSVAR } from "../slots/clock.ts";

/** An account's lamports and the requested slice of its data. */
export interface Account {
  readonly lamports: Lamports;
  readonly data: Buffer;
  /** The program that owns it, in base58; undefined when the node omits it. */
  readonly owner?: string | undefined;
  /** The bytes of all its data; undefined when the node omits it. */
  readonly space?: number | undefined;
  /** Whether it is a program; undefined when the node omits it. */
  readonly executable?: boolean | undefined;
}

/** A part of an account's data: `length` bytes from `offset`, or fewer if the data ends before. */
export interface DataSlice {
  readonly offset: number;
  readonly length: number;
}

/** Addresses, in base58, whose accounts must be read in the same slot. */
type Group = readonly string[];
/** Accounts in the order of their addresses, undefined for a missing one, and the slot in which they were read. */
interface Found {
  readonly accounts: readonly (Account | undefined)[];
  readonly slot: number;
}

/** A read of groups of accounts. Groups have indexes, and accounts the order of their addresses. */
export interface AccountsRead {
  readonly groups: readonly Group[];
  readonly dataSlice: DataSlice;
  /**
   * Takes a group's accounts, read in `slot`. False if `slot` is too old for the group, `unreadable` if the accounts
   * cannot be true.
   */
  readonly take: (
    index: number,
    accounts: readonly (Account | undefined)[],
    slot: number,
  ) => boolean | "unreadable";
  /** The slot that a group requires now; 0 for any. */
  readonly minSlotOf?: (index: number) => number;
  /** Called for each call to an endpoint. */
  readonly onCall?: (() => void) | undefined;
}

/** The limit of `getMultipleAccounts`. */
export const MAX_ACCOUNTS_PER_CALL = 100;
/** Each call also reads the clock. */
export const MAX_ACCOUNTS_PER_READ = MAX_ACCOUNTS_PER_CALL - 1;
/** The accounts that all wallets of a call share: the clock and the rent. */
const SHARED_ACCOUNTS = 2;

/** How long a provider's lower limit is remembered, so that a single odd refusal does not cost calls forever. */
const LIMIT_MAX_AGE_MS = 3_600_000;
/** How many times a group that needs several calls is read until all calls answer for the same slot. */
const MAX_READS_OF_GROUP = 3;

/**
 * Reads accounts in groups. The accounts of a group are read by one call, so that they are consistent. What
 * several groups of a call have in common is read once, and the cluster's clock with it, which shows how old the
 * endpoint's state is.
 *
 * Some providers accept fewer accounts per call than 100. When an endpoint refuses a call, its limit becomes half
 * of that call's accounts, for an hour. Only a group above the limit is split: its calls must answer for the same
 * slot.
 */
export function createReadAccounts(needs: { failover: Failover; callEndpoint: CallEndpoint }) {
  const { failover, callEndpoint } = needs;
  const limits = new Map<Endpoint, { readonly keys: number; readonly forgetAt: number }>();

  function limitOf(endpoint: Endpoint): number {
    const limit = limits.get(endpoint);
    return limit && performance.now() < limit.forgetAt ? limit.keys : MAX_ACCOUNTS_PER_CALL;
  }

  /** A refusal of a single account is not about the size of the call. */
  function learnFromRefusal(endpoint: Endpoint, keys: number): void {
    if (keys === 1) limits.delete(endpoint);
    else {
      // Both halves read the shared accounts: two wallets are 8 accounts, one is 5.
      const half = Math.min(keys - 1, Math.ceil((keys + SHARED_ACCOUNTS) / 2));
      const limit = {
        keys: Math.min(limitOf(endpoint), half),
        forgetAt: performance.now() + LIMIT_MAX_AGE_MS,
      };
      limits.set(endpoint, limit);
    }
  }

  function createReader(
    endpoint: Endpoint,
    readOptions: object,
    { dataSlice, onCall }: AccountsRead,
    signal: AbortSignal,
  ) {
    async function call(keys: Group): Promise<Found> {
      onCall?.();
      const options = { ...readOptions, encoding: "base64", dataSlice };
      try {
        const { context, value } = await callEndpoint(
          endpoint,
          "getMultipleAccounts",
          [keys, options],
          signal,
        );
        if (value.length !== keys.length)
          throw new RpcError("unreadable", "getMultipleAccounts", endpoint.host);
        const accounts = value.map((account) => (account ? withSlice(account, dataSlice) : undefined));
        return { accounts, slot: context.slot };
      } catch (error) {
        if (refusesSize(error)) learnFromRefusal(endpoint, keys.length);
        throw error;
      }
    }

    /** Reads one group by several calls. */
    async function readSplit(group: Group, readsLeft = MAX_READS_OF_GROUP): Promise<Found> {
      const limit = limitOf(endpoint);
      const keys = [CLOCK_SYSVAR, ...group];
      const chunks = Array.from({ length: Math.ceil(keys.length / limit) }, (_, i) =>
        keys.slice(i * limit, (i + 1) * limit),
      );
      try {
        const parts = await Promise.all(chunks.map(call));
        const { slot } = parts[0]!;
        if (parts.every((part) => part.slot === slot))
          return { accounts: parts.flatMap(({ accounts }) => accounts).slice(1), slot };
      } catch (error) {
        if (limitOf(endpoint) >= limit) throw error;
        return readSplit(group, readsLeft);
      }
      if (readsLeft === 1) {
        const cause = new Error("the accounts of one group were read in different slots");
        throw new RpcError("unreadable", "getMultipleAccounts", endpoint.host, { cause });
      }
      return readSplit(group, readsLeft - 1);
    }

    async function read(groups: readonly Group[]): Promise<Found[]> {
      const keys = [...new Set([CLOCK_SYSVAR, ...groups.flat()])];
      let isRefused = false;
      if (keys.length <= limitOf(endpoint)) {
        try {
          const { accounts, slot } = await call(keys);
          const byKey = new Map(keys.map((key, i) => [key, accounts[i]]));
          return groups.map((group) => ({ accounts: group.map((key) => byKey.get(key)), slot }));
        } catch (error) {
          if (limitOf(endpoint) >= keys.length) throw error;
          isRefused = true;
        }
      }
      if (groups.length === 1) return [await readSplit(groups[0]!)];
      const middle = Math.ceil(groups.length / 2);
      const halves = [groups.slice(0, middle), groups.slice(middle)] as const;
      // After a refusal only one call at a time probes for the limit.
      if (isRefused) return [...(await read(halves[0])), ...(await read(halves[1]))];
      return (await Promise.all(halves.map(read))).flat();
    }
    return read;
  }

  /** Groups that `take` refuses are read again, at the next endpoints and until the timeout. */
  return async (request: AccountsRead): Promise<void> => {
    const { groups, take, minSlotOf = () => 0 } = request;
    const open = new Set(groups.keys());
    await failover.call(async (endpoint, signal) => {
      const asked = [...open];
      // No group of the call is refused for the sake of another.
      const readOptions = {
        commitment: "confirmed",
        ...toMinContextSlot(Math.min(...asked.map(minSlotOf))),
      };
      const read = createReader(endpoint, readOptions, request, signal);
      const found = await read(asked.map((index) => groups[index]!));
      let isUnreadable = false;
      for (const [i, index] of asked.entries()) {
        // Another endpoint may have answered in the meantime.
        if (!open.has(index)) continue;
        const { accounts, slot } = found[i]!;
        const isTaken = take(index, accounts, slot);
        if (isTaken === true) open.delete(index);
        isUnreadable ||= isTaken === "unreadable";
      }
      if (open.size > 0)
        throw new RpcError(isUnreadable ? "unreadable" : "slot", "getMultipleAccounts", endpoint.host);
    });
  };
}

/** Requires no slot if it is 0, because every node has reached that. */
export function toMinContextSlot(minContextSlot: number): { minContextSlot?: number } {
  return minContextSlot > 0 ? { minContextSlot } : {};
}

/** The account with this slice of its data, because some nodes ignore the requested slice. */
function withSlice(account: Account, { offset, length }: DataSlice): Account {
  const { data } = account;
  return data.length > length ? { ...account, data: data.subarray(offset, offset + length) } : account;
}
