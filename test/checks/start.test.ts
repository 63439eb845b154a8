import { Keypair } from "@solana/web3.js";
import { describe, expect } from "vitest";
import { ConfigError, readConfig } from "../../src/config.ts";
import { LAUNCHPAD_PROGRAMS } from "../../src/chain/launchpad/program-ids.ts";
import { createGateway } from "../../src/gateway.ts";
import { createLogger } from "../../src/observability/log.ts";
import { REFUSES_VERSION_1 } from "../support/refuse-version-1.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { chain, sandbox, withNewSandbox } from "../support/fixtures.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { inject } from "../support/inject.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const MAINNET = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";

const it = withNewSandbox();

const envWith = (env: Record<string, string>) => ({
  ...sandbox.env,
  ...AMPLE_DEADLINES,
  PORT: "0",
  ...env,
});
/** A gateway before its startup checks, with its log output. */
function createGatewayWith(env: Record<string, string> = {}) {
  const lines: string[] = [];
  const log = createLogger("trace", { write: (line) => void lines.push(line) });
  const gateway = createGateway(readConfig(envWith(env)), { log });
  return { ...gateway, output: () => lines.join("") };
}
const simulateMainnet = () =>
  sandbox.rpc.faults.add({
    when: isMethod("getGenesisHash"),
    then: rpcResult(MAINNET),
  });

describe("a start", () => {
  it("logs the cluster, the deployed programs, the fee payer's balance, and that the token is accepted", async () => {
    simulateMainnet();
    const { start, output, api } = createGatewayWith();
    await start();
    expect(output()).toMatch(/SOLANA_RPC_URL: \S+ is on mainnet-beta/);
    for (const program of [
      "ESCROW_PROGRAM_ID: the escrow program",
      "SOLANA_RPC_URL: the launch platform's program LAUNCHPAD",
      "SOLANA_RPC_URL: the launch platform's program AMM",
      "SOLANA_RPC_URL: the launch platform's program FEES",
    ])
      expect(output()).toMatch(new RegExp(`${program} \\w+ is deployed, last in slot \\d+[";]`));
    expect(output()).toMatch(/the fee payer \w+ holds 10\.0000 SOL/);
    expect(output()).toContain("SOCIAL_API_TOKEN: the social network accepts it");
    expect((await inject(api, "/readyz")).status).toBe(200);
    expect(chain.ledger()).toHaveLength(0);
  });

  it.each(["ESCROW", ...Object.keys(LAUNCHPAD_PROGRAMS)])(
    "fails on a public cluster without the program %s",
    async (name) => {
      simulateMainnet();
      const isEscrow = name === "ESCROW";
      const id = isEscrow
        ? sandbox.env.ESCROW_PROGRAM_ID
        : LAUNCHPAD_PROGRAMS[name as keyof typeof LAUNCHPAD_PROGRAMS];
      chain.setBalance(id, 0n);
      const start = createGatewayWith().start();
      const atFault = isEscrow ? "ESCROW_PROGRAM_ID" : "SOLANA_RPC_URL";
      await expect(start).rejects.toThrow(`${atFault}: there is no program ${id} on mainnet-beta`);
      await expect(start).rejects.toThrow(ConfigError);
    },
  );

  it("only warns on a private cluster, where a program may be deployed later", async () => {
    const { start, output } = createGatewayWith({
      ESCROW_PROGRAM_ID: Keypair.generate().publicKey.toBase58(),
    });
    await start();
    expect(output()).toMatch(/"level":40.*ESCROW_PROGRAM_ID: there is no program/);
  });

  it("names the endpoint that refuses transactions of version 1, and only that one", async () => {
    sandbox.secondRpc.faults.add(REFUSES_VERSION_1);
    const [first, second] = [sandbox.rpc, sandbox.secondRpc].map(({ url }) => new URL(url).host);
    const urls = `${sandbox.rpc.url},${sandbox.secondRpc.url}`;
    const { start, output } = createGatewayWith({ SOLANA_RPC_URL: urls });
    await start();
    const refuses = "is on a private cluster; it refuses transactions of version 1";
    expect(output()).toMatch(new RegExp(`"level":40.*${second} ${refuses}`));
    expect(output()).not.toContain(`${first} ${refuses}`);
    expect(chain.ledger()).toHaveLength(0);
  });

  it("succeeds without upstreams that may recover, but the service is not ready until they do", async () => {
    const skip = createSkipTime();
    hold(sandbox.social);
    sandbox.rpc.faults.add({ then: "reset" });
    const { start, output, api } = createGatewayWith();
    let isStarted = false;
    const started = start().then(() => (isStarted = true));
    await expect.poll(() => sandbox.social.calls.length).toBe(1);
    const starting = await inject(api, "/readyz");
    expect([isStarted, starting.status]).toEqual([false, 503]);
    await sandbox.social.close();
    await started;
    expect(output()).toMatch(
      /"level":40.*SOLANA_RPC_URL: \S+ does not answer \((UND_ERR_SOCKET|ECONNRESET)\): .*if it uses TLS, use https/,
    );
    expect(output()).toMatch(
      /"level":40.*social network does not answer as expected \(ECONNREFUSED\): .*nothing listens at this port/,
    );
    const ready = await inject(api, "/readyz");
    expect([ready.status, JSON.parse(ready.body)]).toEqual([
      503,
      {
        status: "unavailable",
        reasons: ["starting"],
        warnings: expect.arrayContaining([
          expect.stringContaining("the social network does not answer"),
          expect.stringContaining("no chain endpoint answers"),
        ]),
      },
    ]);
    sandbox.rpc.faults.clear();
    // Probes within five seconds share a check.
    skip(5_000);
    await expect.poll(async () => (await inject(api, "/readyz")).status).toBe(200);
  });
});
