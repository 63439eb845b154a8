import { setTimeout as sleep } from "node:timers/promises";
import { PublicKey } from "@solana/web3.js";
import { compileMessage, toTransaction } from "../chain/collect/message/message.ts";
import { withDeadline } from "../chain/rpc/deadline.ts";
import { createCallEndpoint, type Endpoint } from "../chain/rpc/rpc-endpoint.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import { refusesSize, refusesVersion } from "../chain/rpc/rpc-error.ts";
import type { RpcMethod, RpcResult } from "../chain/rpc/rpc-results.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import type { CallUpstream } from "../upstream/http.ts";
import { monotonicNow, type MonotonicTime, msBetween, msSince } from "../time/monotonic.ts";

/** As many accounts as the service reads in one call. Some providers' plans allow fewer. */
const LARGEST_CALL = Array.from({ length: MAX_ACCOUNTS_PER_CALL }, (_, i) =>
  new PublicKey(i + 1).toBase58(),
);
const NO_DATA = { offset: 0, length: 0 };
/**
 * How long slots are counted: up to STILL_MS if no new slot appears, because a leader may skip its
 * four slots.
 */
const COUNT_MS = 1_000;
const STILL_MS = 5_000;
/** Endpoints that are further apart than this do not serve the same balances. */
const MAX_APART_SECONDS = 5;
const TRANSACTIONS = {
  version1: "takes transactions of version 1",
  legacy: "takes only legacy transactions, which hold fewer collects",
  none: "does not simulate transactions",
};
const CONFIRMED = { commitment: "confirmed" };

/** An endpoint's slot at the time `at`, and its slots per second. */
interface Pace {
  readonly slot: number;
  readonly at: MonotonicTime;
  readonly perSecond: number;
}

type Call = <M extends RpcMethod>(method: M, params: unknown[]) => Promise<RpcResult<M>>;

/**
 * Examines how well endpoints suit the service. `feePayer`: an address in base58, for a simulated
 * transaction.
 */
export function createExamineEndpoints(needs: {
  callUpstream: CallUpstream;
  rpcTimeoutMs: number;
  feePayer: string;
}) {
  const { feePayer } = needs;
  const callEndpoint = createCallEndpoint(needs);
  const paces: Pace[] = [];

  return {
    /** The finding's text starts with `text`, which names the endpoint's cluster. */
    async examine(endpoint: Endpoint, text: string): Promise<Finding> {
      const call: Call = (method, params) =>
        withDeadline(needs.rpcTimeoutMs, (deadline) =>
          callEndpoint(endpoint, method, params, deadline),
        );
      const [pace, version, taken, refusal] = await Promise.all([
        countSlots(call).catch(() => undefined),
        call("getVersion", []).then(
          (found) => found["solana-core"],
          () => "an unknown version",
        ),
        takenAt(call, feePayer),
        call("getMultipleAccounts", [
          LARGEST_CALL,
          { encoding: "base64", dataSlice: NO_DATA },
        ]).then(
          () => undefined,
          (error: unknown) => error as Error,
        ),
      ]);
      if (pace) paces.push(pace);
      const facts = [
        `runs ${version}`,
        pace ? `makes ${pace.perSecond.toFixed(1)} slots a second` : "does not return its slot",
        TRANSACTIONS[taken],
        `${refusal ? "refuses" : "accepts"} calls for ${MAX_ACCOUNTS_PER_CALL} accounts`,
      ];
      const all = `${text}; it ${facts.join(", ")}`;
      // The service splits a refused call only if the refusal may be about the call's size.
      if (refusal && !refusesSize(refusal))
        return bad("SOLANA_RPC_URL", `${all}: choose a plan without this limit`);
      if (refusal) return poor("SOLANA_RPC_URL", `${all}: a larger plan needs fewer calls`);
      if (taken === "none")
        return poor("SOLANA_RPC_URL", `${all}: collects need simulateTransaction`);
      if (pace?.perSecond === 0)
        return poor("SOLANA_RPC_URL", `${all}: it, or the cluster, stands still`);
      return (pace ? good : poor)("SOLANA_RPC_URL", all);
    },

    /**
     * Reports how many slots the examined endpoints are apart; empty for fewer than two endpoints.
     */
    distance(): Finding[] {
      const [first, ...others] = paces;
      if (!first || others.length === 0) return [];
      const perSecond = Math.max(...paces.map((pace) => pace.perSecond));
      const now = paces.map(({ slot, at }) => slot + (msSince(at) / 1_000) * perSecond);
      const slots = Math.max(...now) - Math.min(...now);
      const text = `the endpoints are ${Math.round(slots)} slots apart`;
      return slots <= MAX_APART_SECONDS * perSecond
        ? [good("SOLANA_RPC_URL", text)]
        : [
            poor(
              "SOLANA_RPC_URL",
              `${text}: one of them is behind, and is used only while no better one answers`,
            ),
          ];
    },
  };
}

async function countSlots(call: Call): Promise<Pace> {
  const read = async () => ({ slot: await call("getSlot", [CONFIRMED]), at: monotonicNow() });
  const first = await read();
  let last = first;
  while (msBetween(first.at, last.at) < (last.slot > first.slot ? COUNT_MS : STILL_MS)) {
    await sleep(COUNT_MS);
    last = await read();
  }
  return { ...last, perSecond: ((last.slot - first.slot) * 1_000) / msBetween(first.at, last.at) };
}

/** Simulates an empty transaction of version 1 to find out which versions a node accepts. */
async function takenAt(call: Call, feePayer: string): Promise<keyof typeof TRANSACTIONS> {
  const budget = { version: 1, unitLimit: 1_000, price: 0n } as const;
  const transaction = toTransaction(
    compileMessage(feePayer, [], budget, PublicKey.default.toBase58()),
    feePayer,
  );
  const config = {
    ...CONFIRMED,
    encoding: "base64",
    sigVerify: false,
    replaceRecentBlockhash: true,
  };
  try {
    const { value } = await call("simulateTransaction", [transaction, config]);
    return value.err === "UnsupportedVersion" ? "legacy" : "version1";
  } catch (error) {
    return refusesVersion(error) ? "legacy" : "none";
  }
}
