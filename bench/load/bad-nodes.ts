import { randomBytes } from "node:crypto";
import { getBase58Decoder } from "@solana/kit";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { JsonRpcError, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../../src/sandbox/rpc/methods.ts";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import type { ToMethods } from "./endpoints.ts";
import type { Timeline } from "./timeline.ts";

/** An endpoint's node that is behind, limited or on another cluster, or loses what it is sent. */
export interface BadNode {
  readonly name: string;
  readonly methods: ToMethods;
  /**
   * The node can make a transaction look expired. So it is a long fault, during which blockhashes
   * expire.
   */
  readonly isLong?: boolean;
  /** The node shows the state of an earlier slot. */
  readonly isStale?: boolean;
  /** The endpoint first closes connections for a moment. */
  readonly isDownFirst?: boolean;
  readonly isOfOtherCluster?: boolean;
}

/** By how many slots the other cluster is ahead. Devnet and mainnet differ by tens of millions. */
const OTHER_CLUSTER_SLOTS = 50_000_000;
/** How many slots nodes are behind: a slow one, and one over the 32 slots to finality. */
const SLOTS_BEHIND = [5, 60];
/** How fast a restarted node catches up. */
const MS_PER_SLOT_CAUGHT_UP = 10;
/** For how many blocks a blockhash is valid. */
const VALID_BLOCKS = 150;
/** How many slots of history a node keeps. */
const SLOTS_KEPT = 50;
/** How many accounts a provider allows in a call. */
const MOST_ACCOUNTS = 50;

const base58 = getBase58Decoder();
const newBlockhash = () => base58.decode(randomBytes(32));

/** A node that accepts transactions, but drops them. */
export const dropTransactions: ToMethods = (healthy) => ({
  ...healthy,
  sendTransaction: (params) =>
    decodeTransaction(Buffer.from((params as [string])[0], "base64")).signature,
});

function fail(code: number): never {
  throw new JsonRpcError(code, "the endpoint refuses the call");
}

/** A node that shows another view of the chain. */
const showing =
  (toView: () => Chain): ToMethods =>
  () =>
    createMethods(toView());

/** Nodes that answer in turn. */
const poolOf =
  (nodes: readonly ToMethods[]): ToMethods =>
  (healthy) => {
    const methods = nodes.map((toMethods) => toMethods(healthy));
    let calls = 0;
    const inTurn = (name: string) => (params: unknown) =>
      methods[calls++ % methods.length]![name]!(params);
    return Object.fromEntries(Object.keys(healthy).map((name) => [name, inTurn(name)]));
  };

const withoutStatuses: ToMethods = (healthy) => ({
  ...healthy,
  getSignatureStatuses(params) {
    const answer = healthy.getSignatureStatuses!(params) as object;
    return { ...answer, value: (params as [string[]])[0].map(() => null) };
  },
});

/** A node that keeps only the statuses of the last minutes. */
const withoutHistory: ToMethods = (healthy) => ({
  ...healthy,
  getTransaction: () => fail(-32011),
  getSignaturesForAddress: () => fail(-32011),
  getSignatureStatuses(params) {
    const [, config] = params as [unknown, { searchTransactionHistory?: boolean }?];
    return config?.searchTransactionHistory ? fail(-32011) : healthy.getSignatureStatuses!(params);
  },
});

const withoutVersion1: ToMethods = (healthy) => ({
  ...healthy,
  getTransaction(params) {
    const transaction = healthy.getTransaction!(params) as { version: unknown } | null;
    return transaction?.version === 1 ? fail(-32015) : transaction;
  },
});

const withFewAccounts: ToMethods = (healthy) => ({
  ...healthy,
  getMultipleAccounts(params) {
    if ((params as [string[]])[0].length > MOST_ACCOUNTS)
      throw new JsonRpcError(-32602, `Too many inputs provided; max ${MOST_ACCOUNTS}`);
    return healthy.getMultipleAccounts!(params);
  },
});

const withoutSimulatedAccounts: ToMethods = (healthy) => ({
  ...healthy,
  simulateTransaction(params) {
    const answer = healthy.simulateTransaction!(params) as { value: object };
    return { ...answer, value: { ...answer.value, accounts: null } };
  },
});

/**
 * Returns the bad nodes, the worst first. At most one endpoint has one at a time. `blockhashes`:
 * the last height at which each blockhash is valid.
 */
export function createBadNodes(
  chain: Chain,
  timeline: Timeline,
  blockhashes: ReadonlyMap<string, { readonly lastValid: number }>,
): BadNode[] {
  const otherCluster: Chain = {
    ...chain,
    genesisHash: newBlockhash(),
    slot: (commitment) => chain.slot(commitment) + OTHER_CLUSTER_SLOTS,
    blockHeight: (commitment) => chain.blockHeight(commitment) + OTHER_CLUSTER_SLOTS,
    account: () => null,
    balance: () => 0n,
    latestBlockhash: (commitment) => ({
      blockhash: newBlockhash(),
      lastValidBlockHeight: chain.blockHeight(commitment) + OTHER_CLUSTER_SLOTS + VALID_BLOCKS,
    }),
    landed: () => undefined,
    ledger: () => [],
    simulate: () => ({
      ...{ err: "AccountNotFound", logs: [], unitsConsumed: 0, accounts: new Map() },
    }),
    send: () => "BlockhashNotFound",
  };

  /** A node that has not seen the last slots. It still forwards transactions. */
  function staleChain(slots: () => number): Chain {
    const slot: Chain["slot"] = (commitment) => chain.slot(commitment) - slots();
    const blockHeight: Chain["blockHeight"] = (commitment) =>
      chain.blockHeight(commitment) - slots();
    return {
      ...timeline.viewAt(() => slot("finalized")),
      slot,
      blockHeight,
      latestBlockhash(commitment) {
        const lastValidBlockHeight = blockHeight(commitment) + VALID_BLOCKS;
        const [blockhash] =
          [...blockhashes].find(([, { lastValid }]) => lastValid === lastValidBlockHeight) ?? [];
        return blockhash ? { blockhash, lastValidBlockHeight } : chain.latestBlockhash(commitment);
      },
      isBlockhashValid(blockhash) {
        const { lastValid = 0 } = blockhashes.get(blockhash) ?? {};
        const height = blockHeight("processed");
        return height <= lastValid && lastValid <= height + VALID_BLOCKS;
      },
      landed(signature) {
        const landed = chain.landed(signature);
        return landed && landed.slot <= slot("processed") ? landed : undefined;
      },
    };
  }
  const behind = (slots: number) => showing(() => staleChain(() => slots));

  function stoppedChain(): Chain {
    const stoppedAt = chain.slot("processed");
    return staleChain(() => chain.slot("processed") - stoppedAt);
  }

  /** A view without the transactions before a slot. */
  const pruned = (view: Chain, firstSlot: number): Chain => ({
    ...view,
    landed(signature) {
      const landed = view.landed(signature);
      return landed && landed.slot >= firstSlot ? landed : undefined;
    },
    ledger: () => view.ledger().filter(({ slot }) => slot >= firstSlot),
  });

  function restartedChain(): Chain {
    const startedAt = Date.now();
    const caughtUp = () => Math.floor((Date.now() - startedAt) / MS_PER_SLOT_CAUGHT_UP);
    const catchingUp = staleChain(() => Math.max(0, SLOTS_BEHIND.at(-1)! - caughtUp()));
    return pruned(catchingUp, chain.slot("processed"));
  }

  return [
    {
      name: "a stopped node that drops transactions",
      methods: (healthy) => dropTransactions(showing(stoppedChain)(healthy)),
      isLong: true,
      isStale: true,
    },
    { name: "no transaction has a status", methods: withoutStatuses, isLong: true },
    { name: "transactions accepted, but dropped", methods: dropTransactions, isLong: true },
    {
      name: "another cluster, where all accounts are empty",
      methods: showing(() => otherCluster),
      isLong: true,
      isDownFirst: true,
      isOfOtherCluster: true,
    },
    {
      name: "a restarted node",
      methods: showing(restartedChain),
      isStale: true,
      isDownFirst: true,
    },
    {
      name: "a pool of nodes that differ by some slots",
      methods: poolOf([0, ...SLOTS_BEHIND].map(behind)),
      isStale: true,
    },
    ...SLOTS_BEHIND.map((slots) => ({
      name: `the state of ${slots} slots ago`,
      methods: behind(slots),
      isStale: true,
    })),
    {
      name: "no transaction is found",
      methods: (healthy: Methods) => ({ ...healthy, getTransaction: () => null }),
    },
    {
      name: `the history of ${SLOTS_KEPT} slots`,
      methods: (healthy) => {
        const view = timeline.viewAt(() => chain.slot("finalized"));
        return showing(() => pruned(view, chain.slot("finalized") - SLOTS_KEPT))(healthy);
      },
    },
    { name: "no history (-32011)", methods: withoutHistory },
    { name: "no transaction of version 1 is returned (-32015)", methods: withoutVersion1 },
    ...[-32602, -32005, -32016].map((code) => ({
      name: `error ${code} for every call`,
      methods: (healthy: Methods) =>
        Object.fromEntries(Object.keys(healthy).map((name) => [name, () => fail(code)])),
    })),
    { name: `at most ${MOST_ACCOUNTS} accounts in a call`, methods: withFewAccounts },
    { name: "no accounts in simulations", methods: withoutSimulatedAccounts },
  ];
}
