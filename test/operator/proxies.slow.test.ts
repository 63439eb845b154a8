import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, onTestFinished, vi } from "vitest";
import { startTlsProxy } from "../support/doubles/tls-proxy.ts";
import { runMain } from "../support/program.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const it = withNewSandbox();
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Starts a proxy that connects to this machine, whatever the host's name. */
async function startProxy({ status = 200 } = {}) {
  const targets = new Set<string>();
  const proxy = createServer().on("connect", ({ url }: IncomingMessage, socket: Socket) => {
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
  return { url, targets: () => [...targets] };
}

/** Runs the doctor in this process, which trusts the upstream with TLS. */
async function examine(HTTPS_PROXY: string): Promise<string> {
  const variables = { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY };
  const upstream = await startTlsProxy(sandbox.rpc.url);
  onTestFinished(upstream.close);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const SOLANA_RPC_URL = upstream.url.replace("127.0.0.1", "localhost");
  const env = { ...sandbox.env, ...AMPLE_DEADLINES, SOLANA_RPC_URL, PORT: "0", ...variables };
  const program = runMain(env, ["doctor"]);
  await program.exitCode();
  return program.output();
}

describe("a proxy", () => {
  it("carries calls, whose certificate is the upstream's", async () => {
    const { url, targets } = await startProxy();
    const output = await examine(url);
    expect(output).not.toContain("WRONG");
    expect(targets()).toEqual([expect.stringMatching(/^localhost:/)]);
  });

  it("is named if it refuses a connection", async () => {
    const { url } = await startProxy({ status: 407 });
    expect(await examine(url)).toMatch(
      /WRONG {2}SOLANA_RPC_URL: .*: the proxy refuses the connection: check HTTPS_PROXY/,
    );
  });
});
