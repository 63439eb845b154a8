import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { startSandbox } from "../../src/sandbox/sandbox.ts";

/** An account to create. */
interface NewAccount {
  readonly lamports: bigint;
  /** In base58. */
  readonly owner: string;
  readonly data: Uint8Array;
}

/** A node whose chain the tests may change by its own means. Await what the methods return. */
export interface TestNode {
  readonly url: string;
  /** Creates or overwrites an account, without a transaction. */
  setAccount(address: string, account: NewAccount): unknown;
  deploy(programId: string, elf: Buffer): unknown;
  /** Skips this many slots, without blocks where the node can. */
  skipSlots(count: number): unknown;
  /**
   * Lets the blocks pass in which a transaction could land. Does nothing if they pass by
   * themselves.
   */
  expireBlockhashes(): unknown;
  close(): unknown;
}

/** Calls a JSON-RPC method of a node. */
export async function callNode(
  url: string,
  method: string,
  params: readonly unknown[],
): Promise<any> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
  return result;
}

/** A node with Surfpool's methods for setting accounts: https://docs.surfpool.run/rpc/cheatcodes */
export function connectToSurfpool(url: string): TestNode {
  const call = (method: string, ...params: unknown[]) => callNode(url, method, params);
  return {
    url,
    setAccount: (address, { lamports, owner, data }) =>
      call("surfnet_setAccount", address, {
        lamports: Number(lamports),
        owner,
        data: Buffer.from(data).toString("hex"),
        executable: false,
      }),
    deploy: (programId, elf) => call("surfnet_writeProgram", programId, elf.toString("hex"), 0),
    async skipSlots(count) {
      const slot: number = await call("getSlot", { commitment: "processed" });
      await call("surfnet_timeTravel", { absoluteSlot: slot + count });
    },
    expireBlockhashes: () => undefined,
    close: () => undefined,
  };
}

/** The sandbox's chain as a node. Its programs are deployed already. */
export async function startSandboxNode(): Promise<TestNode> {
  const { chain, rpc, close } = await startSandbox({
    ...{ slotMs: 50, rpcPort: 0, socialPort: 0 },
    platformPrograms: process.env.PLATFORM_PROGRAMS || undefined,
  });
  return {
    url: rpc.url,
    setAccount: (address, account) => {
      chain.setAccount(address, account);
    },
    deploy: () => undefined,
    skipSlots: (count) => {
      chain.advanceSlots(count);
    },
    expireBlockhashes: () => {
      chain.advanceSlots(200);
    },
    close,
  };
}

/** A proxy in front of a node. */
export interface NodeProxy {
  readonly url: string;
  /**
   * Requests of these methods get no answer, and do not reach the node. Others pass. None: every
   * request passes.
   */
  swallow(...methods: string[]): void;
  /** How many requests got no answer since `swallow`. */
  swallowed(): number;
  /** Refuses connections until `start`, as a node that is down. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts a proxy of the node at `nodeUrl`, on a free port. */
export async function startProxy(nodeUrl: string): Promise<NodeProxy> {
  let swallowed: readonly string[] = [];
  let count = 0;
  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await Array.fromAsync(request)).join("");
    const { method } = JSON.parse(body) as { method: string };
    if (swallowed.includes(method)) {
      count++;
      return;
    }
    const answer = await fetch(nodeUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    response
      .writeHead(answer.status, { "content-type": "application/json" })
      .end(await answer.text());
  }
  const server = createServer((request, response) => {
    void forward(request, response);
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    swallow: (...methods) => {
      swallowed = methods;
      count = 0;
    },
    swallowed: () => count,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
    start: () => listen(port),
  };
}
