import type { Lamports } from "../primitives/lamports.ts";
import { FINALIZED } from "./commitment.ts";
import type { Failover } from "./failover.ts";
import type { Attempt, CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { RpcError } from "./rpc-error.ts";
import type { Account, TransactionError } from "./rpc-results.ts";

interface SimulationWanted {
  /** The accounts to return. The first one exists after any transaction that succeeds. */
  readonly addresses: readonly string[];
  /** The simulated state is at least as new. */
  readonly minSlot: number;
}

/** What the simulation of a transaction shows. */
export interface Simulation {
  /** The simulated state is of this slot. */
  readonly slot: number;
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  /** By address, after the transaction; undefined for a missing one. Empty after an error. */
  readonly accounts: ReadonlyMap<string, Account | undefined>;
  /**
   * The lamports of the message's accounts before the transaction, in order. Empty if the node
   * omits them; an amount is undefined if JSON may have rounded it.
   */
  readonly preBalances: readonly (Lamports | undefined)[];
}

/** Simulates transactions (base64, signed or not), with a fresh blockhash. */
export function createSimulateTransaction(needs: {
  failover: Failover;
  callEndpoint: CallEndpoint;
}) {
  const { failover, callEndpoint } = needs;
  const method = "simulateTransaction";

  const simulateAt =
    (transaction: string, request: SimulationWanted): Attempt<Simulation> =>
    async (endpoint, signal) => {
      const { addresses, minSlot } = request;
      const options = {
        ...FINALIZED,
        minContextSlot: minSlot,
        encoding: "base64",
        sigVerify: false,
        replaceRecentBlockhash: true,
        accounts: { encoding: "base64", addresses },
      };
      const params = [transaction, options];
      const { context, value } = await callEndpoint(endpoint, method, params, signal);
      const { err, unitsConsumed } = value;
      // Some nodes decode a transaction of a version that is not active, and fail its simulation.
      if (err === "UnsupportedVersion") throw new RpcError("refused", method, endpoint.host);
      const accounts = (err === null && value.accounts) || [];
      const isComplete =
        accounts.length === addresses.length && accounts[0] !== null && unitsConsumed > 0;
      if (err === null && !isComplete) throw new RpcError("unreadable", method, endpoint.host);
      return {
        ...value,
        slot: context.slot,
        accounts: new Map(accounts.map((account, i) => [addresses[i]!, account ?? undefined])),
      };
    };

  return {
    /** Throws {@link RpcError} `refused` if every endpoint refuses the transaction. */
    simulateTransaction: (transaction: string, request: SimulationWanted): Promise<Simulation> =>
      failover.call("reads", simulateAt(transaction, request), { minSlot: () => request.minSlot }),

    /** Throws {@link RpcError} `refused` if this endpoint refuses the transaction. */
    simulateAtEndpoint: (endpoint: Endpoint, transaction: string): Promise<Simulation> =>
      failover.callOne(endpoint, "sends", simulateAt(transaction, { addresses: [], minSlot: 0 })),
  };
}
