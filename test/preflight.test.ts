import { Keypair } from "@solana/web3.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProgram } from "./support/program.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "./support/sandbox.ts";
import { AMPLE_DEADLINES } from "./support/world.ts";

const MAINNET = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

const start = (env: Record<string, string> = {}) =>
  startProgram({ ...sandbox.env, ...AMPLE_DEADLINES, PORT: "0", ...env });
const beMainnet = () =>
  sandbox.rpc.faults.add({
    when: isMethod("getGenesisHash"),
    then: { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: MAINNET }) },
  });

describe("a start", () => {
  it("logs the cluster, that the programs are deployed, what the fee payer holds, and that the token is accepted", async () => {
    beMainnet();
    const program = start();
    const url = await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toContain("the chain is mainnet-beta");
    expect(program.output()).toContain("the launch platform's programs are deployed");
    expect(program.output()).toMatch(/the fee payer \w+ holds 10\.0000 SOL, enough for \d+ collects/);
    expect(program.output()).toContain("SOCIAL_API_TOKEN: the social network accepts it");
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(sandbox.chain.ledger()).toHaveLength(0);
  });

  it.each(["ESCROW_PROGRAM_ID", "LAUNCHPAD_PROGRAM_ID", "LAUNCHPAD_AMM_PROGRAM_ID"])(
    "is refused on a public cluster that does not have %s",
    async (name) => {
      beMainnet();
      const id = Keypair.generate().publicKey.toBase58();
      const program = start({ [name]: id });
      expect(await program.exitCode()).toBe(1);
      expect(program.output()).toContain(
        `Tributary cannot start: ${name}: there is no program ${id} on mainnet-beta`,
      );
    },
  );

  it("only warns on a private cluster, where a program may be deployed later", async () => {
    const program = start({ ESCROW_PROGRAM_ID: Keypair.generate().publicKey.toBase58() });
    await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toMatch(/"level":40.*ESCROW_PROGRAM_ID: there is no program/);
  });

  it("warns about a fee payer that can pay for few collects", async () => {
    const program = start({ FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]) });
    await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toMatch(/"level":40.*holds 0\.0000 SOL, enough for 0 collects.*fund it/);
  });

  it("logs that the token is refused, without showing it", async () => {
    const program = start({ SOCIAL_API_TOKEN: "a-token-that-is-wrong" });
    await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toMatch(/"level":50.*refuses SOCIAL_API_TOKEN/);
    expect(program.output()).not.toContain("a-token-that-is-wrong");
  });

  it("continues without upstreams that may recover, and is not ready while it waits for them", async () => {
    const liftHang = sandbox.social.faults.add({ then: "hang" });
    sandbox.rpc.faults.add({ then: "reset" });
    const program = start({ LOG_LEVEL: "debug" });
    await expect.poll(() => sandbox.social.calls.length).toBe(1);
    expect(program.output()).not.toContain('"url"');
    liftHang();
    await sandbox.social.close();
    const url = await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toContain("the chain does not answer yet");
    expect(program.output()).toContain("the social network does not answer correctly yet");
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: "unavailable", reasons: ["no chain endpoint answers"] },
    ]);
  });
});
