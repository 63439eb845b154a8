import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { FINALIZED } from "./commitment.ts";
import { withDeadline } from "./deadline.ts";
import type { EndpointDoubt } from "./endpoint-doubt.ts";
import type { Failover } from "./failover.ts";
import { toMinContextSlot } from "./read-accounts.ts";
import type { Attempt, CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { RpcError, toRpcError } from "./rpc-error.ts";
import type { Account, RpcResult } from "./rpc-results.ts";
import type { TransactionError } from "./transaction-error.ts";

const SIMULATION = {
  ...FINALIZED,
  encoding: "base64",
  sigVerify: false,
  replaceRecentBlockhash: true,
};

/** An account that does not exist. */
const EMPTY = { lamports: toLamports(0), data: Buffer.alloc(0) };

interface SimulationWanted {
  /** The accounts to return. */
  readonly addresses: readonly string[];
  /** One of `addresses`. */
  readonly feePayer: string;
  /** How much worse the simulation is than planned; 0 if it is as planned. */
  readonly severityOf: (simulation: Simulation) => bigint;
  /** The simulated state is at least as new. */
  readonly minSlot: number;
}

type SimulatedAccount = Pick<Account, "lamports" | "data">;

/** What the simulation of a transaction shows. */
export type Simulation =
  | { readonly err: TransactionError; readonly logs: readonly string[] }
  | {
      readonly err: null;
      /** The endpoint that simulated the transaction. */
      readonly endpoint: Endpoint;
      readonly unitsConsumed: number;
      /** By address, after the transaction. */
      readonly accounts: ReadonlyMap<string, SimulatedAccount>;
      /**
       * The lamports of the message's accounts before the transaction, in order. Empty if the node
       * omits them; an amount is undefined if JSON may have rounded it.
       */
      readonly preBalances: readonly (Lamports | undefined)[];
      /** The fee payer's lamports after the transaction. */
      readonly left: Lamports;
    };

/** What the simulation of a transaction shows of its instructions. */
export interface Trace {
  readonly err: TransactionError | null;
  /** The endpoint that simulated the transaction. */
  readonly endpoint: Endpoint;
  /** The simulated state is of this slot. */
  readonly slot: number;
  readonly unitsConsumed: number;
  /** By address, after the transaction; undefined for a missing one. Empty after an error. */
  readonly accounts: ReadonlyMap<string, SimulatedAccount | undefined>;
  /**
   * How many instructions each instruction of the message invoked, by its index; 0 if there is no
   * entry. Undefined if the endpoint does not return inner instructions.
   */
  readonly invoked: ReadonlyMap<number, number> | undefined;
}

/** How many endpoints must agree whether a simulation is as planned, if enough work. */
const MIN_AGREEING = 2;
/** Of three that answer, two agree. */
const MAX_SIMULATIONS = 3;

/** Simulates transactions. Throws {@link RpcError}. */
export function createSimulations(needs: {
  endpoints: readonly Endpoint[];
  failover: Failover;
  doubt: EndpointDoubt;
  callEndpoint: CallEndpoint;
  /** Calls an endpoint, whatever its state. */
  callUnchecked: CallEndpoint;
  rpcTimeoutMs: number;
}) {
  const { endpoints, failover, doubt, callEndpoint, callUnchecked, rpcTimeoutMs } = needs;

  /** Throws {@link RpcError} `refused` if the node refuses the transaction. */
  const simulateAt =
    (
      transaction: string,
      options: object,
      call = callEndpoint,
    ): Attempt<RpcResult<"simulateTransaction">> =>
    async (endpoint, signal) => {
      const method = "simulateTransaction";
      const result = await call(endpoint, method, [transaction, options], signal);
      // Some nodes decode a transaction of a version that is not active, and fail its simulation.
      if (result.value.err !== "UnsupportedVersion") return result;
      throw new RpcError("refused", method, endpoint.host);
    };

  return {
    /**
     * Simulates a transaction (base64, signed or not) with a fresh blockhash. The next endpoint is
     * asked too if a simulation omits members, or is worse than planned. If the second one is not,
     * a third decides, if it works. Of those that are worse, the least severe one counts: one
     * endpoint alone makes nothing fail, leaves nothing out, and has nothing signed that fails.
     * Throws {@link RpcError} `refused` if every endpoint refuses the transaction.
     */
    async simulateTransaction(transaction: string, request: SimulationWanted): Promise<Simulation> {
      const { addresses, feePayer, severityOf, minSlot } = request;
      const options = {
        ...SIMULATION,
        ...toMinContextSlot(minSlot),
        accounts: { encoding: "base64", addresses },
      };
      const simulate = simulateAt(transaction, options);
      const simulations: Simulation[] = [];
      const worseSimulations = () => simulations.filter((each) => severityOf(each) > 0n);
      await failover.callWithTransaction(
        "simulateTransaction",
        async (endpoint, signal): Promise<Simulation> => {
          const { value } = await simulate(endpoint, signal);
          const { err, unitsConsumed, accounts, preBalances, logs } = value;
          if (err !== null) return { err, logs: logs ?? [] };
          const payerLamports = accounts?.[addresses.indexOf(feePayer)]?.lamports;
          if (
            payerLamports === undefined ||
            accounts?.length !== addresses.length ||
            !unitsConsumed ||
            unitsConsumed < 0
          )
            throw new RpcError("unreadable", "simulateTransaction", endpoint.host);
          return {
            ...{ err, endpoint, unitsConsumed, left: payerLamports },
            accounts: new Map(addresses.map((address, i) => [address, accounts[i] ?? EMPTY])),
            preBalances: preBalances ?? [],
          };
        },
        (simulation) => {
          simulations.push(simulation);
          const worse = worseSimulations().length;
          return worse === 0 || worse >= MIN_AGREEING || simulations.length >= MAX_SIMULATIONS;
        },
        {
          avoided: doubt.endpoint(),
          // A third endpoint is not waited for.
          areNeeded: () => simulations.length < MIN_AGREEING,
        },
      );
      const worse = worseSimulations();
      const countedSimulations = worse.length >= MIN_AGREEING ? worse : simulations;
      return countedSimulations.reduce((least, simulation) =>
        severityOf(simulation) < severityOf(least) ? simulation : least,
      );
    },

    /**
     * Simulates a transaction (base64, signed or not) in a slot of at least `minSlot`, and counts
     * the instructions that it runs.
     */
    traceTransaction(
      transaction: string,
      addresses: readonly string[],
      minSlot: number,
    ): Promise<Trace> {
      const options = {
        ...SIMULATION,
        ...toMinContextSlot(minSlot),
        innerInstructions: true,
        accounts: { encoding: "base64", addresses },
      };
      const simulate = simulateAt(transaction, options);
      return failover.callWithTransaction(
        "simulateTransaction",
        async (endpoint, signal): Promise<Trace> => {
          const { context, value } = await simulate(endpoint, signal);
          const { err, unitsConsumed, accounts, innerInstructions } = value;
          if (err === null && accounts?.length !== addresses.length)
            throw new RpcError("unreadable", "simulateTransaction", endpoint.host);
          return {
            ...{ err, endpoint },
            slot: context.slot,
            unitsConsumed: unitsConsumed ?? 0,
            accounts: new Map(
              err === null ? addresses.map((each, i) => [each, accounts?.[i] ?? undefined]) : [],
            ),
            invoked: innerInstructions
              ? new Map(innerInstructions.map((each) => [each.index, each.instructions.length]))
              : undefined,
          };
        },
        () => true,
      );
    },

    /**
     * Simulates a transaction (base64) at each endpoint, whatever its state and its slot. Returns
     * the errors of the endpoints that do not simulate it.
     */
    async simulateAtEach(transaction: string): Promise<ReadonlyMap<Endpoint, RpcError>> {
      const errors = new Map<Endpoint, RpcError>();
      await Promise.all(
        endpoints.map((endpoint) =>
          withDeadline(rpcTimeoutMs, (deadline) =>
            simulateAt(transaction, SIMULATION, callUnchecked)(endpoint, deadline),
          ).catch((cause: unknown) => {
            errors.set(endpoint, toRpcError(cause, "simulateTransaction", endpoint.host));
          }),
        ),
      );
      return errors;
    },
  };
}
