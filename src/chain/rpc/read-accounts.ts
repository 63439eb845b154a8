import { decodeRent, RENT_SYSVAR, type Rent } from "../primitives/rent.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR } from "../slots/clock.ts";
import { FINALIZED } from "./commitment.ts";
import type { CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { refusesSize, RpcError } from "./rpc-error.ts";
import type { Account } from "./rpc-results.ts";
import { addMs, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";

/** Accounts in the order of their addresses; undefined for a missing one. */
export type Accounts = readonly (Account | undefined)[];

/** A group's accounts, the slot in which they were read, and the rent rate of that slot. */
export interface Found {
  readonly accounts: Accounts;
  readonly slot: number;
  readonly rent: Rent;
  /** Which endpoint showed them. */
  readonly endpoint: Endpoint;
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
  /** This endpoint is asked only after all others that work. */
  readonly avoided?: Endpoint | undefined;
  /** Whether to wait for the other endpoints after an `unusable` answer. */
  readonly needsOthers?: boolean;
}

interface Group {
  readonly index: number;
  readonly keys: readonly string[];
}

/** One call: the index of each address that it reads, and the groups that need the addresses. */
interface Call {
  readonly indexes: ReadonlyMap<string, number>;
  readonly groups: readonly Group[];
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
 * A provider's lower limit is forgotten after this time, so that one odd refusal does not cost
 * calls forever.
 */
const LIMIT_MAX_AGE_MS = 3_600_000;
/**
 * A group that takes several calls is read up to this many times, until all calls answer for the
 * same slot.
 */
const MAX_READS_OF_GROUP = 3;

/**
 * Reads accounts in groups. One call reads all accounts of a group, so that they are consistent. An
 * account in several groups of a call is read once. Some providers accept fewer than 100 accounts
 * per call. When an endpoint refuses a call's size, the endpoint's limit becomes about half of that
 * size, for an hour. Only a group above the limit is split: its calls must answer for the same
 * slot.
 */
export function createReadAccounts(needs: { failover: Failover; callEndpoint: CallEndpoint }) {
  const { failover, callEndpoint } = needs;
  const limits = new Map<Endpoint, { readonly keys: number; readonly forgetAt: MonotonicTime }>();

  function limitOf(endpoint: Endpoint): number {
    const limit = limits.get(endpoint);
    return limit && monotonicNow() < limit.forgetAt ? limit.keys : MAX_ACCOUNTS_PER_CALL;
  }

  /**
   * Lowers the endpoint's limit; removes it if even one account is refused, because then size is
   * not the reason.
   */
  function learnFromRefusal(endpoint: Endpoint, keys: number): void {
    if (keys === 1) limits.delete(endpoint);
    else {
      // Both halves read the sysvars. With them, two wallets have 8 accounts, and one wallet has 5.
      const half = Math.min(limitOf(endpoint), keys - 1, Math.ceil((keys + SYSVARS.length) / 2));
      limits.set(endpoint, { keys: half, forgetAt: addMs(monotonicNow(), LIMIT_MAX_AGE_MS) });
    }
  }

  /**
   * Passes each group's accounts to `take`, in any order. Retries `unusable` groups once at each
   * further endpoint, and `older` groups until the timeout. Rejects with {@link RpcError} if a
   * group is not taken: `account` if all such groups are `unusable`.
   */
  return async ({
    groups,
    bytes,
    take,
    minSlotOf = () => 0,
    avoided: avoidedEndpoint,
    needsOthers = false,
  }: AccountsRead): Promise<void> => {
    const length = Math.max(bytes, CLOCK_BYTES);
    /** The groups that are not taken yet. */
    const open = new Map(groups.map((keys, index) => [index, { index, keys }]));

    async function readAt(endpoint: Endpoint, signal: AbortSignal): Promise<RpcError | undefined> {
      const method = "getMultipleAccounts";
      const refusals = new Set<"older" | "unusable">();

      async function ask(keys: readonly string[], minSlot: number) {
        const dataSlice = { offset: 0, length };
        const options = {
          ...FINALIZED,
          ...toMinContextSlot(minSlot),
          encoding: "base64",
          dataSlice,
        };
        try {
          const { context, value } = await callEndpoint(endpoint, method, [keys, options], signal);
          if (value.length !== keys.length) throw new RpcError("unreadable", method, endpoint.host);
          return {
            accounts: value.map((account) => withSlice(account, length)),
            slot: context.slot,
          };
        } catch (error) {
          if (refusesSize(error)) learnFromRefusal(endpoint, keys.length);
          throw error;
        }
      }

      async function readCall({ indexes, groups }: Call, limit: number): Promise<void> {
        // The lowest slot of all groups: a group must not fail because another group of the call
        // needs a newer slot.
        const minSlot = Math.min(...groups.map(({ index }) => minSlotOf(index)));
        const chunks = chunksOf([...indexes.keys()], limit);
        const askAll = () => Promise.all(chunks.map((keys) => ask(keys, minSlot)));
        let answers = await askAll();
        for (let reads = 1; reads < MAX_READS_OF_GROUP && !isOfOneSlot(answers); reads++)
          answers = await askAll();
        const { slot } = answers[0]!;
        const read = answers.flatMap(({ accounts }) => accounts);
        const rent = decodeRent(read[SYSVARS.indexOf(RENT_SYSVAR)]?.data);
        // If the rent rate is impossible, the whole answer is wrong.
        if (!rent) {
          const cause = new Error("the rent sysvar cannot be true");
          throw new RpcError("unreadable", method, endpoint.host, { cause });
        }
        for (const { index, keys } of groups) {
          // Another endpoint may have answered in the meantime.
          if (!open.has(index)) continue;
          const accounts = keys.map((key) => read[indexes.get(key)!]);
          const group = { accounts, slot, rent, endpoint };
          const result = isOfOneSlot(answers) ? take(index, group) : "unusable";
          if (result === "taken") open.delete(index);
          else refusals.add(result);
        }
      }

      const unread = new Set(open.values());
      let limit = limitOf(endpoint);
      let atOnce = Infinity;
      while (unread.size > 0) {
        const reads = pack([...unread], limit)
          .slice(0, atOnce)
          .map(async (call) => {
            await readCall(call, limit);
            for (const group of call.groups) unread.delete(group);
          });
        try {
          await Promise.all(reads);
        } catch (error) {
          if (!refusesSize(error)) throw error;
          await Promise.allSettled(reads);
          if (limitOf(endpoint) >= limit) throw error;
          limit = limitOf(endpoint);
          // From now on, send one call at a time to find the limit.
          atOnce = 1;
        }
      }
      if (open.size === 0) return undefined;
      const error = new RpcError(refusals.has("older") ? "slot" : "account", method, endpoint.host);
      if (refusals.has("older")) throw error;
      return error;
    }

    const unusable = await failover.call(readAt, (result) => result === undefined, {
      avoided: avoidedEndpoint,
      others: needsOthers ? { method: "getMultipleAccounts", areNeeded: () => true } : undefined,
    });
    if (unusable) throw unusable;
  };
}

/**
 * Packs groups, the largest first, each into the first call with room. A group above `limit` gets
 * its own call.
 */
function pack(groups: readonly Group[], limit: number): readonly Call[] {
  const calls: { readonly indexes: Map<string, number>; readonly groups: Group[] }[] = [];
  for (const group of groups.toSorted((a, b) => b.keys.length - a.keys.length)) {
    const newTo = ({ indexes }: Call) => group.keys.filter((key) => !indexes.has(key)).length;
    let call = calls.find((each) => each.indexes.size + newTo(each) <= limit);
    if (!call)
      calls.push((call = { indexes: new Map(SYSVARS.map((key, i) => [key, i])), groups: [] }));
    for (const key of group.keys)
      if (!call.indexes.has(key)) call.indexes.set(key, call.indexes.size);
    call.groups.push(group);
  }
  return calls;
}

const isOfOneSlot = (answers: readonly { readonly slot: number }[]) =>
  answers.every(({ slot }) => slot === answers[0]?.slot);

const chunksOf = (keys: readonly string[], size: number) =>
  Array.from({ length: Math.ceil(keys.length / size) }, (_, i) =>
    keys.slice(i * size, (i + 1) * size),
  );

/** Omits slot 0, because every node has reached it. */
export function toMinContextSlot(minContextSlot: number): { minContextSlot?: number } {
  return minContextSlot > 0 ? { minContextSlot } : {};
}

/** Cuts the account's data to `length` bytes, because some nodes ignore the requested slice. */
function withSlice(account: Account | null, length: number): Account | undefined {
  if (!account) return undefined;
  const { data } = account;
  return data.length > length ? { ...account, data: data.subarray(0, length) } : account;
}
