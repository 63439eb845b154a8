/**
 * What all benchmarks use: statistics, tables, and a gateway in this process on a sandbox with
 * slots of 10 ms.
 */
import { withRpcFaults } from "../test/support/faults.ts";
import { readConfig } from "../src/config.ts";
import { createGateway } from "../src/gateway.ts";
import { listen } from "../src/http/server.ts";
import { createLogger } from "../src/observability/log.ts";
import { createLoopbackServer } from "../src/sandbox/loopback-server.ts";
import { startSandbox } from "../src/sandbox/sandbox.ts";

export const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

export const percentile = (values: readonly number[], percent: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(((values.length - 1) * percent) / 100)]!;

/** The time that `run` takes, in ms. */
export async function timed(run: () => unknown): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

/** Calls `run` with each number from 0 to `count` - 1; at most `inFlight` calls run at once. */
export async function repeat(
  { count, inFlight }: { count: number; inFlight: number },
  run: (i: number) => unknown,
): Promise<void> {
  let next = 0;
  const runNext = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, runNext));
}

/** Returns the client address with this number, of 16 million. */
export const callerOf = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

type SlotTimes = Pick<NonNullable<Parameters<typeof startSandbox>[0]>, "slotMs" | "finalityMs">;

/** Prints a row of a Markdown table. */
export const printRow = (...cells: readonly (string | number)[]) => {
  console.log(`| ${cells.join(" | ")} |`);
};

/** Prints the head of a table. The cells of all columns but the first are numbers. */
export function printHead(...titles: readonly string[]): void {
  console.log();
  printRow(...titles);
  printRow("---", ...titles.slice(1).map(() => "--:"));
}

/**
 * Starts the gateway on a free port, without Redis, and without limits that a benchmark could
 * reach. `endpoints`: how many endpoints of the chain it has.
 */
export async function startOnSandbox(
  env: Record<string, string> = {},
  { endpoints: count = 1, ...slots }: SlotTimes & { endpoints?: number } = {},
) {
  const sandbox = await startSandbox({ slotMs: 10, ...slots, rpcPort: 0, socialPort: 0 });
  const { rpc } = sandbox;
  const { handle } = rpc;
  const others = Array.from({ length: count - 1 }, () => createLoopbackServer({ port: 0, handle }));
  const endpoints = [rpc, ...(await Promise.all(others))].map(withRpcFaults);
  const config = readConfig({
    ...sandbox.env,
    SOLANA_RPC_URL: endpoints.map(({ url }) => url).join(),
    PORT: "0",
    TRUST_PROXY: "127.0.0.1",
    RATE_LIMIT_MAX: "1000000",
    RPC_CALLS_PER_SECOND: "1000000",
    FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
    ...env,
  });
  const gateway = createGateway(config, { log: createLogger("silent") });
  const server = await listen(gateway.api, config);
  return {
    sandbox,
    endpoints,
    config,
    /**
     * Collects as a caller; returns the signature of the transaction. Throws if nothing was
     * collected.
     */
    async collect(
      collect: { socialId: string; mints?: readonly string[] },
      caller = 0,
    ): Promise<string> {
      const body = JSON.stringify(collect);
      const headers = { "x-forwarded-for": callerOf(caller) };
      const response = await fetch(`${server.url}/collect`, { method: "POST", headers, body });
      const { txSignature, message } = (await response.json()) as {
        txSignature?: string;
        message?: string;
      };
      if (!txSignature) throw new Error(message);
      return txSignature;
    },
    async close() {
      gateway.drain();
      await server.close();
      await gateway.settled();
      gateway.close();
      await Promise.all([sandbox, ...endpoints].map((each) => each.close()));
    },
  };
}
