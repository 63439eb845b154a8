import { once } from "node:events";
import { createServer, request as requestTarget, type IncomingMessage } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startTlsProxy } from "../support/doubles/tls-proxy.ts";
import { runMain, startProgram } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

/** Starts a proxy that connects to this machine, whatever the host's name. */
async function startProxy({ status = 200 } = {}) {
  const targets = new Set<string>();
  const proxy = createServer((request, response) => {
    const { host, port, pathname, search } = new URL(request.url!);
    targets.add(host);
    const { method, headers } = request;
    const at = { host: "127.0.0.1", port, path: pathname + search, method, headers };
    const call = requestTarget(at, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(call.on("error", () => void response.destroy()));
  }).on("connect", ({ url }: IncomingMessage, socket: Socket) => {
    targets.add(url!);
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} Refused\r\n\r\n`);
      return;
    }
    const target = connect(Number(url!.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(target).pipe(socket);
    });
    for (const each of [socket, target]) each.on("error", () => void target.destroy());
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void proxy.close());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { url, targets: () => [...targets].toSorted() };
}

/** The sandbox's variables, with hosts that only the proxy knows. */
const farEnv = (): Record<string, string> => ({
  ...sandbox.env,
  ...AMPLE_DEADLINES,
  SOCIAL_API_URL: sandbox.env.SOCIAL_API_URL.replace("127.0.0.1", "network.invalid"),
  SOLANA_RPC_URL: sandbox.env.SOLANA_RPC_URL.replace("127.0.0.1", "rpc.invalid"),
  PORT: "0",
});

async function examine(env: Record<string, string>) {
  const program = startProgram({ ...farEnv(), ...env }, undefined, ["doctor"]);
  await program.exitCode();
  return program.output();
}

describe("a proxy", () => {
  it("carries the calls to the network and the chain", async () => {
    const { url, targets } = await startProxy();
    const output = await examine({ NODE_USE_ENV_PROXY: "1", HTTP_PROXY: url });
    expect(output).not.toContain("WRONG");
    expect(targets()).toEqual([
      expect.stringMatching(/^network\.invalid:/),
      expect.stringMatching(/^rpc\.invalid:/),
    ]);
  });

  /** Runs the doctor in this process, which trusts the upstream, with the proxy at `url`. */
  async function examineWithTls(url: string): Promise<string> {
    const upstream = await startTlsProxy(sandbox.rpc.url);
    onTestFinished(() => {
      upstream.close();
    });
    const variables = { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: url };
    Object.assign(process.env, variables);
    onTestFinished(() => {
      for (const name of Object.keys(variables)) Reflect.deleteProperty(process.env, name);
    });
    const SOLANA_RPC_URL = upstream.url.replace("127.0.0.1", "localhost");
    const env = { ...sandbox.env, ...AMPLE_DEADLINES, SOLANA_RPC_URL, PORT: "0" };
    const program = runMain(env, ["doctor"]);
    await program.exitCode();
    return program.output();
  }

  it("carries calls with TLS, whose certificate is the upstream's", async () => {
    const { url, targets } = await startProxy();
    expect(await examineWithTls(url)).not.toContain("WRONG");
    expect(targets()).toEqual([expect.stringMatching(/^localhost:/)]);
  });

  it("is named if it refuses a connection", async () => {
    const { url } = await startProxy({ status: 407 });
    expect(await examineWithTls(url)).toMatch(
      /WRONG {2}SOLANA_RPC_URL: .*: the proxy refuses the connection: check HTTPS_PROXY/,
    );
  });

  it("is not used without NODE_USE_ENV_PROXY, which the doctor says", async () => {
    const { url, targets } = await startProxy();
    const output = await examine({ HTTP_PROXY: url });
    expect(output).toContain("check  HTTP_PROXY has no effect: to call the network");
    expect(targets()).toEqual([]);
  });

  it("needs a valid URL, which no message quotes", async () => {
    // Node itself refuses some of these, unless they are in .env.
    const env = { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: "me:a-secret@proxy" };
    const program = runMain({ ...farEnv(), ...env }, ["doctor"]);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("  - HTTPS_PROXY: expected a URL that starts with http://");
    expect(program.output()).not.toContain("a-secret");
  });
});
