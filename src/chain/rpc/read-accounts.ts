import type { Lamports } from "../lamports.ts";
import { decodeRent, RENT_SYSVAR, type Rent } from "../rent.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../slots/clock.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { refusesSize, RpcError } from "./rpc-error.ts";

/** An account's lamports and the first bytes of its data. */
export interface Account {
  readonly lamports: Lamports;
  /** It has 2^53 lamports or more, which JSON may have rounded: they must not be used. */
  readonly isRounded: boolean;
  readonly data: Buffer;
  /** The program that owns it, in base58; undefined when the node omits it. */
  readonly owner?: string | undefined;
  /** The bytes of all its data; undefined when the node omits it. */
  readonly space?: number | undefined;
  /** Whether it is a program; undefined when the node omits it. */
  readonly executable?: boolean | undefined;
}

/** Accounts in the order of their addresses; undefined for a missing one. */
export type Accounts = readonly (Account | undefined)[];

/** A group's accounts, the slot in which they were read, and the price of storage in that slot. */
export interface Found {
  readonly accounts: Accounts;
  readonly slot: number;
  readonly rent: Rent;
}

/** A read of groups of accounts. Groups have indexes, and accounts the order of their addresses. */
export interface AccountsRead {
  /** Addresses, in base58, whose accounts must be read in the same slot. */
  readonly groups: readonly (readonly string[])[];
  /** How many bytes of each account's data are needed, from its start. */
  readonly bytes: number;
  /**
   * Takes a group's accounts. `older`: they are to be read in a newer slot. `unusable`: they cannot be used; this says
   * nothing about the endpoint.
   */
  readonly take: (index: number, found: Found) => "taken" | "older" | "unusable";
  /** The slot that a group requires now; 0 for any. */
  readonly minSlotOf?: (index: number) => number;
  /** Called for each call to an endpoint. */
  readonly onCall?: (() => void) | undefined;
}

interface Group {
  readonly index: number;
  readonly keys: readonly string[];
}

/** What one call reads, and for whom. */
interface Call {
  readonly keys: ReadonlySet<string>;
  readonly groups: readonly Group[];
}

/** The limit of `getMultipleAccounts`. */
export const MAX_ACCOUNTS_PER_CALL = 100;

/** What each call reads besides its groups, first: how old the node's state is, and the price of storage. */
const SYSVARS = [CLOCK_SYSVAR, RENT_SYSVAR];

/** The most accounts of groups in one call. */
export const MAX_KEYS_PER_CALL = MAX_ACCOUNTS_PER_CALL - SYSVARS.length;

/** How long a provider's lower limit is remembered, so that a single odd refusal does not cost calls forever. */
const LIMIT_MAX_AGE_MS = 3_600_000;
/** How many times a group that needs several calls is read until all calls answer for the same slot. */
const MAX_READS_OF_GROUP = 3;

/**
 * Reads accounts in groups. The accounts of a group are read by one call, so that they are consistent. What
 * several groups of a call have in common is read once.
 *
 * Some providers accept fewer accounts per call than 100. When an endpoint refuses a call, its limit becomes about half
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
      // Both halves read the sysvars: two wallets are 8 accounts, one is 5.
      const half = Math.min(limitOf(endpoint), keys - 1, Math.ceil((keys + SYSVARS.length) / 2));
      limits.set(endpoint, { keys: half, forgetAt: performance.now() + LIMIT_MAX_AGE_MS });
    }
  }

  /** Reads all groups at one endpoint, and passes each to `give` as soon as its call is answered. */
  function readAt(
    endpoint: Endpoint,
    groups: readonly Group[],
    {
      bytes,
      minSlotOf = () => 0,
      onCall,
      give,
      signal,
    }: Omit<AccountsRead, "groups" | "take"> & {
      /** Undefined for a group that could not be read in one slot. */
      give: (group: Group, found: Found | undefined) => void;
      signal: AbortSignal;
    },
  ): Promise<void> {
    const length = Math.max(bytes, CLOCK_BYTES);
    const unreadable = (cause?: Error) =>
      new RpcError("unreadable", "getMultipleAccounts", endpoint.host, { cause });

    async function call(keys: readonly string[], minSlot: number) {
      onCall?.();
      const options = {
        commitment: "confirmed",
        ...toMinContextSlot(minSlot),
        encoding: "base64",
        dataSlice: { offset: 0, length },
      };
      try {
        const { context, value } = await callEndpoint(
          endpoint,
          "getMultipleAccounts",
          [keys, options],
          signal,
        );
        if (value.length !== keys.length) throw unreadable();
        return { accounts: value.map((account) => withSlice(account, length)), slot: context.slot };
      } catch (error) {
        if (refusesSize(error)) learnFromRefusal(endpoint, keys.length);
        throw error;
      }
    }

    /** An answer with an impossible price of storage is wrong as a whole. */
    function rentIn(accounts: Accounts): Rent {
      const rent = decodeRent(accounts[SYSVARS.indexOf(RENT_SYSVAR)]?.data);
      if (!rent) throw unreadable(new Error("the rent sysvar cannot be true"));
      return rent;
    }

    /** Reads one group by several calls; undefined if they are never of one slot. */
    async function readSplit(group: Group, readsLeft = MAX_READS_OF_GROUP): Promise<Found | undefined> {
      const limit = limitOf(endpoint);
      const keys = [...SYSVARS, ...group.keys];
      const chunks = Array.from({ length: Math.ceil(keys.length / limit) }, (_, i) =>
        keys.slice(i * limit, (i + 1) * limit),
      );
      try {
        const parts = await Promise.all(chunks.map((chunk) => call(chunk, minSlotOf(group.index))));
        const { slot } = parts[0]!;
        if (parts.every((part) => part.slot === slot)) {
          const all = parts.flatMap(({ accounts }) => accounts);
          return { accounts: all.slice(SYSVARS.length), slot, rent: rentIn(all) };
        }
      } catch (error) {
        if (limitOf(endpoint) >= limit) throw error;
        return readSplit(group, readsLeft);
      }
      return readsLeft > 1 ? readSplit(group, readsLeft - 1) : undefined;
    }

    /** Reads groups by one call, or by smaller ones if the endpoint refuses it for its size. */
    async function readTogether({ keys, groups }: Call): Promise<void> {
      if (keys.size <= limitOf(endpoint)) {
        try {
          // No group of the call is refused for the sake of another.
          const minSlot = Math.min(...groups.map(({ index }) => minSlotOf(index)));
          const asked = [...keys];
          const { accounts, slot } = await call(asked, minSlot);
          const rent = rentIn(accounts);
          const byKey = new Map(asked.map((key, i) => [key, accounts[i]]));
          for (const group of groups)
            give(group, { accounts: group.keys.map((key) => byKey.get(key)), slot, rent });
          return;
        } catch (error) {
          if (limitOf(endpoint) >= keys.size) throw error;
        }
      }
      const [first, ...others] = groups;
      if (others.length === 0) give(first!, await readSplit(first!));
      // After a refusal only one call at a time probes for the limit.
      else for (const part of pack(groups, limitOf(endpoint))) await readTogether(part);
    }

    return Promise.all(pack(groups, limitOf(endpoint)).map(readTogether)).then(() => undefined);
  }

  /**
   * Groups that are `older` are read again, at the next endpoints and until the timeout; `unusable` ones at the next
   * endpoints. Rejects with an {@link RpcError} if any is not taken: `account` if the others are.
   */
  return async ({ groups, take, ...read }: AccountsRead): Promise<void> => {
    const open = new Map(groups.map((keys, index) => [index, { index, keys }]));
    const unusable = await failover.call(
      async (endpoint, signal): Promise<RpcError | undefined> => {
        const refusals = new Set<"older" | "unusable">();
        const give = ({ index }: Group, found: Found | undefined) => {
          // Another endpoint may have answered in the meantime.
          if (!open.has(index)) return;
          const result = found ? take(index, found) : "unusable";
          if (result === "taken") open.delete(index);
          else refusals.add(result);
        };
        await readAt(endpoint, [...open.values()], { ...read, give, signal });
        if (open.size === 0) return undefined;
        const isOlder = refusals.has("older");
        const error = new RpcError(isOlder ? "slot" : "account", "getMultipleAccounts", endpoint.host);
        if (isOlder) throw error;
        return error;
      },
      (result) => result === undefined,
    );
    if (unusable) throw unusable;
  };
}

/**
 * Distributes groups to calls of at most `limit` accounts: the largest first, each to the first call with room. A group
 * that needs more has a call of its own.
 */
function pack(groups: readonly Group[], limit: number): readonly Call[] {
  const calls: { readonly keys: Set<string>; readonly groups: Group[] }[] = [];
  for (const group of groups.toSorted((a, b) => b.keys.length - a.keys.length)) {
    let call = calls.find(({ keys }) => hasRoom(keys, group, limit));
    if (!call) calls.push((call = { keys: new Set(SYSVARS), groups: [] }));
    for (const key of group.keys) call.keys.add(key);
    call.groups.push(group);
  }
  return calls;
}

function hasRoom(keys: ReadonlySet<string>, group: Group, limit: number): boolean {
  let size = keys.size;
  for (const key of group.keys) if (!keys.has(key)) size++;
  return size <= limit;
}

/** Requires no slot if it is 0, because every node has reached that. */
export function toMinContextSlot(minContextSlot: number): { minContextSlot?: number } {
  return minContextSlot > 0 ? { minContextSlot } : {};
}

/** The account with this much data, because some nodes ignore the requested slice. */
function withSlice(account: Account | null, length: number): Account | undefined {
  if (!account) return undefined;
  const { data } = account;
  return data.length > length ? { ...account, data: data.subarray(0, length) } : account;
}
