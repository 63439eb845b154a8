import { MIN_LOOKED_AT } from "../chain/history/history.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";

/** The cost of selecting a field once, known before the operation runs. */
interface FieldCost {
  readonly wallets?: number;
  readonly collects?: number;
  readonly listedCollects?: number;
  /**
   * The argument with the number of transfers that the field returns: see {@link
   * requestsOfHistory}.
   */
  readonly transfersOf?: string;
  /**
   * How many history pages of {@link MIN_LOOKED_AT} transactions the field reads. Each costs one
   * request.
   */
  readonly historyPages?: number;
  /** The list argument that multiplies the cost of the field and of everything selected in it. */
  readonly perItemOf?: string;
  /** The list that names coins: an argument, or a member of each item of `perItemOf`. */
  readonly mintsIn?: string;
}

/**
 * The most wallets per operation, including those in lists. The social network accepts the same
 * number per call.
 */
export const MAX_WALLETS = 100;
/** The most accounts that one address follows in all its streams. */
export const MAX_FOLLOWED = 100;
/** For callers who look up one account per request. */
export const BATCHING = `To look up many accounts, use GraphQL: \`wallets\` takes ${MAX_WALLETS} handles in one request.`;
/** The most `collect` fields per operation. They run one after the other. */
export const MAX_COLLECTS = 10;
/** The most entries of `collectMany` per operation. They are collected at the same time. */
export const MAX_LISTED_COLLECTS = 100;

/** The most coins that an operation names, counted for each wallet. */
export const MAX_MINTS_PER_OPERATION = 100;
/**
 * A query costs one request for this many accounts of the chain. 100 wallets without coins count as
 * this many.
 */
export const ACCOUNTS_PER_REQUEST = 400;
/** At most two wallets that each have this many coins or more fit into one call to the chain. */
export const COINS_OF_HALF_A_CALL = 6;
/** Only one wallet with this many coins or more fits into a call. */
export const COINS_OF_A_CALL = 10;

/**
 * How many accounts a wallet with `coins` coins counts as: enough that one request pays for at most
 * five calls.
 */
export function accountsOf(coins: number): number {
  const accounts = 4 + 5 * coins;
  if (coins >= COINS_OF_A_CALL) return Math.max(accounts, MAX_ACCOUNTS_PER_CALL);
  return coins >= COINS_OF_HALF_A_CALL ? Math.max(accounts, ACCOUNTS_PER_REQUEST / 10) : accounts;
}

/** The most transfers per operation. */
export const MAX_TRANSFERS = 100;
/** The transfers of a page if the caller does not say how many. */
export const DEFAULT_TRANSFERS = 10;
/**
 * For this many transactions beyond {@link MIN_LOOKED_AT}, a history page costs one more request.
 */
export const LOOKED_AT_PER_REQUEST = 25;

/** How many requests a history page of at most `first` transfers costs. */
export const requestsOfHistory = (first: number): number =>
  1 + Math.ceil(Math.max(0, first - MIN_LOOKED_AT) / LOOKED_AT_PER_REQUEST);

/**
 * The costs of root fields, and of all other fields, by their names: root fields of one name cost
 * the same, and so do all others.
 */
export const FIELD_COSTS: Readonly<Record<"root" | "nested", ReadonlyMap<string, FieldCost>>> = {
  root: new Map([
    ["wallet", { wallets: 1 }],
    ["walletById", { wallets: 1 }],
    ["node", { wallets: 1 }],
    ["wallets", { wallets: 1, perItemOf: "handles" }],
    ["walletsById", { wallets: 1, perItemOf: "socialIds" }],
    ["collect", { collects: 1, mintsIn: "mints" }],
    ["collectMany", { listedCollects: 1, perItemOf: "collects", mintsIn: "mints" }],
  ]),
  nested: new Map([
    ["wallet", { wallets: 1 }],
    ["balance", { mintsIn: "mints" }],
    ["coins", { mintsIn: "mints" }],
    ["coinsSeen", { historyPages: 2 }],
    ["history", { transfersOf: "first" }],
  ]),
};
