import { randomBytes } from "node:crypto";
import { getBase58Decoder } from "@solana/kit";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { JsonRpcError, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { claimExpiry, inventLandings } from "../../test/support/doubles/invented-landing.ts";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import { methodsOf, type ToMethods } from "./endpoints.ts";
import type { Timeline } from "./timeline.ts";

/** The answers of a lying endpoint. */
export interface Lie {
  readonly name: string;
  readonly methods: ToMethods;
  /**
   * The lie can make a transaction look expired. So it is a long fault, during which blockhashes
   * expire.
   */
  readonly isLong?: boolean;
  /** The node shows the state of an earlier slot. */
  readonly isStale?: boolean;
  /**
   * The endpoint first closes connections for a moment, as if its host name then pointed to another
   * node.
   */
  readonly movesFirst?: boolean;
}

/** Slots and heights that no cluster reaches. */
const HUGE_SLOT = 1_000_000_000_000;
const HUGE_HEIGHT = 4_000_000_000_000;
/** By how many slots the other cluster is ahead. Devnet and mainnet differ by tens of millions. */
const OTHER_CLUSTER_SLOTS = 50_000_000;
/**
 * How many slots a slow node and a stopped node are behind. The latter is over the 32 slots to
 * finality.
 */
const SLOTS_BEHIND = [5, 60];
/** How many slots a ratchet gains with each answer. */
const SLOTS_GAINED = 7;

/** Enough to make the heights of other endpoints look impossible. */
const BLOCKS_BELOW = 700;
const SIMULATED_LAMPORTS = 1_000_000_000;

/** What an invented transaction moves, and a wrong balance of the fee payer has too much. */
const MANY_LAMPORTS = 777_000_000_000n;

/** The first byte of each invented signature. */
const INVENTED = 255;

/** Few enough that a replica cannot reject them as impossible. */
const SLOTS_AHEAD = 400;

interface RpcTransaction {
  readonly transaction: object;
}

interface Simulation {
  readonly unitsConsumed: number;
  readonly preBalances: readonly number[];
}

const base58 = getBase58Decoder();
const newBlockhash = () => base58.decode(randomBytes(32));
const inventSignature = () => base58.decode(Buffer.concat([Buffer.of(INVENTED), randomBytes(63)]));

/** A node that accepts transactions, but drops them. */
export const dropTransactions: ToMethods = (honest) => ({
  ...honest,
  sendTransaction: (params) =>
    decodeTransaction(Buffer.from((params as [string])[0], "base64")).signature,
});

/** A node that fails every call. */
function failWith(code: number): ToMethods {
  const fail = () => {
    throw new JsonRpcError(code, "the endpoint refuses the call");
  };
  return (honest) => Object.fromEntries(Object.keys(honest).map((name) => [name, fail]));
}

/** A node with this cluster's genesis hash that shows another chain. */
const showing =
  (view: () => Chain): ToMethods =>
  ({ getGenesisHash }) => ({ ...methodsOf(view()), getGenesisHash: getGenesisHash! });

/** A node that claims to be further ahead of the chain with each answer. */
export function createRatchet(chain: Chain): Lie {
  function methods(honest: Methods): Methods {
    let gained = 0;
    const ahead = showing(() => ({
      ...chain,
      slot: (commitment) => chain.slot(commitment) + gained,
      blockHeight: (commitment) => chain.blockHeight(commitment) + gained,
    }))(honest);
    const gaining = Object.entries(ahead).map(([name, method]) => {
      const gain = (params: unknown) => {
        gained += SLOTS_GAINED;
        return method(params);
      };
      return [name, gain] as const;
    });
    return Object.fromEntries(gaining);
  }
  return { name: `${SLOTS_GAINED} slots more with each answer`, methods };
}

/** Returns the lies, the worst first. One endpoint lies at a time. */
export function createLies(chain: Chain, timeline: Timeline): Lie[] {
  const otherGenesisHash = newBlockhash();

  /** The chain with other slots and heights, and without transactions. */
  const withSlots = (slot: Chain["slot"], blockHeight: Chain["blockHeight"]): Chain => ({
    ...chain,
    slot,
    blockHeight,
    latestBlockhash: (commitment) => ({
      ...chain.latestBlockhash(commitment),
      lastValidBlockHeight: blockHeight(commitment) + 150,
    }),
    landed: () => undefined,
  });

  const otherCluster: Chain = {
    ...withSlots(
      (commitment) => chain.slot(commitment) + OTHER_CLUSTER_SLOTS,
      (commitment) => chain.blockHeight(commitment) + OTHER_CLUSTER_SLOTS,
    ),
    account: () => null,
    balance: () => 0n,
    latestBlockhash: (commitment) => ({
      blockhash: newBlockhash(),
      lastValidBlockHeight: chain.blockHeight(commitment) + OTHER_CLUSTER_SLOTS + 150,
    }),
    simulate: () => ({
      ...{ err: "AccountNotFound", logs: [], unitsConsumed: 0 },
      ...{ accounts: new Map(), innerInstructions: [] },
    }),
    send: () => "BlockhashNotFound",
  };

  /**
   * A node that has not seen the last slots. It still forwards transactions, and simulates on the
   * newest state.
   */
  function staleChain(slots: () => number): Chain {
    const slot: Chain["slot"] = (commitment) => chain.slot(commitment) - slots();
    return {
      ...timeline.viewAt(() => slot("finalized")),
      simulate: chain.simulate,
      balance: chain.balance,
      slot,
      blockHeight: (commitment) => chain.blockHeight(commitment) - slots(),
      landed(signature) {
        const landed = chain.landed(signature);
        return landed && landed.slot <= slot("processed") ? landed : undefined;
      },
    };
  }

  function frozenChain(): Chain {
    const frozenAt = chain.slot("processed");
    return staleChain(() => chain.slot("processed") - frozenAt);
  }

  /** Answers one call in `every` with the other methods. */
  const sometimes =
    (every: number, toOthers: ToMethods): ToMethods =>
    (honest) => {
      const others = toOthers(honest);
      let calls = 0;
      const either = (name: string) => (params: unknown) =>
        (++calls % every === 0 ? others : honest)[name]!(params);
      return Object.fromEntries(Object.keys(honest).map((name) => [name, either(name)]));
    };

  const hideStatuses: ToMethods = (honest) => ({
    ...honest,
    getSignatureStatuses: (params) => ({
      context: { slot: chain.slot("processed") },
      value: (params as [string[]])[0].map(() => null),
    }),
  });

  /** A fee payer that has paid far more than it did. */
  const overstateCosts: ToMethods = (honest) => ({
    ...honest,
    getTransaction(params) {
      const truth = honest.getTransaction!(params) as {
        meta: { preBalances?: bigint[] };
      } | null;
      // A transaction that its fee payer could not pay has no balances.
      if (!truth?.meta.preBalances) return truth;
      const [payer = 0n, ...others] = truth.meta.preBalances;
      const preBalances = [payer + MANY_LAMPORTS, ...others];
      return { ...truth, meta: { ...truth.meta, preBalances } };
    },
  });

  const lowerHeights: ToMethods = (honest) => ({
    ...honest,
    getEpochInfo(params) {
      const truth = honest.getEpochInfo!(params) as { blockHeight: number };
      return { ...truth, blockHeight: Math.max(0, truth.blockHeight - BLOCKS_BELOW) };
    },
    getLatestBlockhash(params) {
      const truth = honest.getLatestBlockhash!(params) as {
        value: { lastValidBlockHeight: number };
      };
      const lastValidBlockHeight = Math.max(0, truth.value.lastValidBlockHeight - BLOCKS_BELOW);
      return { ...truth, value: { ...truth.value, lastValidBlockHeight } };
    },
  });

  const changeSimulations =
    (change: (value: Simulation) => object): ToMethods =>
    (honest) => ({
      ...honest,
      simulateTransaction(params) {
        const truth = honest.simulateTransaction!(params) as { value: Simulation };
        return { ...truth, value: change(truth.value) };
      },
    });

  /**
   * Lists a transaction that there is not. `returns`: whether it is a copy of a true one; otherwise
   * the node does not return it.
   */
  function inventEntries({ returns }: { returns: boolean }): ToMethods {
    /** The copied transactions by the invented signature. */
    const copied = new Map<string, string>();
    return (honest) => ({
      ...honest,
      getSignaturesForAddress(params) {
        const truth = honest.getSignaturesForAddress!(params) as { signature: string }[];
        const [newest] = truth;
        const [, { limit }] = params as [string, { limit: number }];
        if (!newest) return truth;
        const signature = inventSignature();
        if (returns) copied.set(signature, newest.signature);
        return [{ ...newest, signature }, ...truth].slice(0, limit);
      },
      getTransaction(params) {
        const [signature, ...config] = params as [string, ...unknown[]];
        const original = copied.get(signature) ?? signature;
        const truth = honest.getTransaction!([original, ...config]) as RpcTransaction | null;
        return (
          truth && { ...truth, transaction: { ...truth.transaction, signatures: [signature] } }
        );
      },
    });
  }

  return [
    {
      name: "failed transactions invented",
      methods: inventLandings(chain, { err: { InstructionError: [1, { Custom: 1 }] } }),
    },
    {
      name: "successes invented, 140 slots ahead",
      methods: inventLandings(chain, { gain: MANY_LAMPORTS, slotsAhead: 140 }),
    },
    { name: "every blockhash expired", methods: claimExpiry(SLOTS_AHEAD) },
    { name: "a fee payer that paid far more", methods: overstateCosts },
    { name: "history entries invented", methods: inventEntries({ returns: true }) },
    { name: "history entries that no node has", methods: inventEntries({ returns: false }) },
    {
      name: "a stale node that drops transactions",
      methods: (honest) =>
        dropTransactions(showing(() => staleChain(() => SLOTS_BEHIND[0]!))(honest)),
      isLong: true,
      isStale: true,
    },
    { name: "no transaction has a status", methods: hideStatuses, isLong: true },
    {
      name: `slots of ${HUGE_SLOT} and heights of ${HUGE_HEIGHT}`,
      methods: showing(() =>
        withSlots(
          () => HUGE_SLOT,
          () => HUGE_HEIGHT,
        ),
      ),
      isLong: true,
    },
    { name: "transactions accepted, but dropped", methods: dropTransactions, isLong: true },
    {
      name: "another cluster, where all accounts are empty",
      methods: () => ({ ...methodsOf(otherCluster), getGenesisHash: () => otherGenesisHash }),
      isLong: true,
      movesFirst: true,
    },
    {
      name: "a node that stands still",
      methods: showing(frozenChain),
      isLong: true,
      isStale: true,
    },
    {
      name: `the state of ${SLOTS_BEHIND[1]} slots ago, one call in five`,
      methods: sometimes(
        5,
        showing(() => staleChain(() => SLOTS_BEHIND[1]!)),
      ),
      isStale: true,
    },
    {
      name: `slots ${SLOTS_AHEAD} too high, one call in ten`,
      methods: sometimes(
        10,
        showing(() => staleChain(() => -SLOTS_AHEAD)),
      ),
    },
    ...SLOTS_BEHIND.map((slots) => ({
      name: `the state of ${slots} slots ago`,
      methods: showing(() => staleChain(() => slots)),
      isStale: true,
    })),
    {
      name: "no transaction is found",
      methods: (honest: Methods) => ({ ...honest, getTransaction: () => null }),
    },
    ...[-32602, -32005, -32016, -32700, -32002, -32015].map((code) => ({
      name: `error ${code} for every call`,
      methods: failWith(code),
    })),
    { name: `heights ${BLOCKS_BELOW} too low`, methods: lowerHeights },
    {
      name: "a rich fee payer and one compute unit in simulations",
      methods: changeSimulations(({ preBalances: [payer, ...others], ...value }) => ({
        ...value,
        unitsConsumed: 1,
        preBalances: [Number(payer) + SIMULATED_LAMPORTS, ...others],
      })),
    },
    {
      name: "no accounts in simulations",
      methods: changeSimulations((value) => ({ ...value, accounts: null })),
    },
  ];
}
