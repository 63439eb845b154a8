import { Connection } from "@solana/web3.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProgram } from "../support/program.ts";
import { isMethod, startTestSandbox, type TestSandbox, isLook } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const get = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, body: await response.json() };
};
const collect = async (url: string, socialId: string) => {
  const response = await fetch(`${url}/collect`, {
    method: "POST",
    body: JSON.stringify({ socialId }),
  });
  return { status: response.status, body: await response.json() };
};

describe("npm start with nothing configured", () => {
  it("runs the whole flow on a sandbox repeatedly", async () => {
    const program = startProgram({ PORT: "0" });
    const url = await program.address(/Gateway +(http\S+)/);
    const rpcUrl = await program.address(/\(RPC\) +(http\S+)/);
    expect(program.output()).toContain("No real money");
    expect(program.output().match(/^ +curl /gm)).toHaveLength(3);

    const found = await get(`${url}/wallet/lookup?handle=creator`);
    expect(found.body.balance).toMatchObject({ vault: "3.1000", pda: "5.2000", total: "8.3000" });
    const collected = await collect(url, found.body.socialId);
    expect(collected.body).toMatchObject({
      success: true,
      collected: "3.1000",
      newBalance: "8.3000",
    });

    const connection = new Connection(rpcUrl, "finalized");
    const signature: string = collected.body.txSignature;
    const transaction = await connection.getTransaction(signature, {
      maxSupportedTransactionVersion: 1,
    });
    expect(transaction?.meta?.err).toBeNull();

    expect(await collect(url, found.body.socialId)).toMatchObject({
      status: 400,
      body: { success: false, error: "NOTHING_TO_COLLECT", collected: "0.0000" },
    });

    await fetch(`${url}/sandbox/fees`, {
      method: "POST",
      body: JSON.stringify({ socialId: found.body.socialId, source: "VAULT", lamports: 1.5e9 }),
    });
    expect((await collect(url, found.body.socialId)).body).toMatchObject({
      collected: "1.5000",
      newBalance: "9.8000",
    });

    program.child.kill("SIGTERM");
    expect(await program.exitCode()).toBe(0);
  });
});

describe("SIGTERM in the middle of a collect", () => {
  let sandbox: TestSandbox;
  beforeEach(async () => {
    sandbox = await startTestSandbox();
  });
  afterEach(() => sandbox.close());

  const start = () => startProgram({ ...sandbox.env, ...AMPLE_DEADLINES, PORT: "0" });
  const isSent = () => sandbox.rpc.calls.some(isMethod("sendTransaction"));

  it("ends the process at once when sent twice, and logs the signature", async () => {
    sandbox.rpc.faults.add({ when: isLook, then: "hang" });
    const program = start();
    const url = await program.address(/"url":"(http[^"]+)"/);
    const lost = collect(url, sandbox.account("creator").id).catch(() => "lost");
    await expect.poll(isSent).toBe(true);
    program.child.kill("SIGTERM");
    await expect.poll(() => program.output()).toContain("shutting down");
    // The next ones count only from one second after the first.
    await expect
      .poll(() => {
        program.child.kill("SIGTERM");
        return program.child.exitCode;
      })
      .toBe(1);
    expect(await lost).toBe("lost");
    expect(program.output()).toMatch(
      /"signatures":\["\w+"\],.*exiting while these transactions are in flight/,
    );
  });
});
