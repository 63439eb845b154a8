import type { Lamports } from "../lamports.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { refusesSize, RpcError } from "./rpc-error.ts";

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
type Found = (Account | undefined)[];

/** The limit of `getMultipleAccounts`. */
export const MAX_ACCOUNTS_PER_CALL = 100;

/** How long a provider's lower limit is remembered, so that a single odd refusal does not cost calls forever. */
const LIMIT_MAX_AGE_MS = 3_600_000;
/** How many times a group that needs several calls is read until all calls answer for the same slot. */
const MAX_READS_OF_GROUP = 3;

/**
 * Reads accounts in groups. The accounts of a group are read by one call, so that they are consistent. What
 * several groups of a call have in common is read once.
 *
 * Some providers accept fewer accounts per call than 100. When an endpoint refuses a call, its limit becomes half
 * of that call's accounts, for an hour. Only a group above the limit is split: its calls must answer for the same
 * slot.
 */
export function createReadAccounts(needs: {
  failover: Failover;
  callEndpoint: CallEndpoint;
  isPossibleSlot: (slot: number) => boolean;
  readOptions: () => object;
}) {
  const { failover, callEndpoint, isPossibleSlot, readOptions } = needs;
  const limits = new Map<Endpoint, { readonly keys: number; readonly forgetAt: number }>();

  function limitOf(endpoint: Endpoint): number {
    const limit = limits.get(endpoint);
    return limit && performance.now() < limit.forgetAt ? limit.keys : MAX_ACCOUNTS_PER_CALL;
  }

  /** A refusal of a single account is not about the size of the call. */
  function learnFromRefusal(endpoint: Endpoint, keys: number): void {
    if (keys === 1) limits.delete(endpoint);
    else {
      // Rounded up, because both halves may read a shared account: two wallets are 7 accounts, one is 4.
      const half = Math.min(limitOf(endpoint), Math.ceil(keys / 2));
      limits.set(endpoint, { keys: half, forgetAt: performance.now() + LIMIT_MAX_AGE_MS });
    }
  }

  function createReader(endpoint: Endpoint, dataSlice: DataSlice, signal: AbortSignal) {
    async function call(keys: Group): Promise<{ found: Found; slot: number }> {
      const options = { ...readOptions(), encoding: "base64", dataSlice };
      try {
        const { context, value } = await callEndpoint(
          endpoint,
          "getMultipleAccounts",
          [keys, options],
          signal,
        );
        // An impossible slot is a sign of another cluster, where the accounts have other balances.
        if (value.length !== keys.length || !isPossibleSlot(context.slot))
          throw new RpcError("unreadable", "getMultipleAccounts", endpoint.host);
        const found = value.map((account) => (account ? withSlice(account, dataSlice) : undefined));
        return { found, slot: context.slot };
      } catch (error) {
        if (refusesSize(error)) learnFromRefusal(endpoint, keys.length);
        throw error;
      }
    }

    /** Reads one group by several calls. */
    async function readSplit(group: Group, readsLeft = MAX_READS_OF_GROUP): Promise<Found> {
      const limit = limitOf(endpoint);
      const chunks = Array.from({ length: Math.ceil(group.length / limit) }, (_, i) =>
        group.slice(i * limit, (i + 1) * limit),
      );
      try {
        const parts = await Promise.all(chunks.map(call));
        if (parts.every(({ slot }) => slot === parts[0]!.slot)) return parts.flatMap(({ found }) => found);
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
      const keys = [...new Set(groups.flat())];
      let isRefused = false;
      if (keys.length <= limitOf(endpoint)) {
        try {
          const { found } = await call(keys);
          const byKey = new Map(keys.map((key, i) => [key, found[i]]));
          return groups.map((group) => group.map((key) => byKey.get(key)));
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

  return (
    groups: readonly Group[],
    dataSlice: DataSlice,
    isReadable: (accounts: Found) => boolean,
  ): Promise<Found[]> =>
    failover.call(async (endpoint, signal) => {
      const found = await createReader(endpoint, dataSlice, signal)(groups);
      if (!found.every(isReadable)) throw new RpcError("unreadable", "getMultipleAccounts", endpoint.host);
      return found;
    });
}

/** The account with this slice of its data, because some nodes ignore the requested slice. */
function withSlice(account: Account, { offset, length }: DataSlice): Account {
  const { data } = account;
  return data.length > length ? { ...account, data: data.subarray(offset, offset + length) } : account;
}
