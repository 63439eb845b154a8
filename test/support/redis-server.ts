import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { Redis } from "ioredis";

export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

/** A redis-server on a free port that keeps nothing on disk. */
export async function startRedis() {
  const port = await freePort();
  let server: ChildProcess;

  async function start(): Promise<void> {
    const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    server = spawn("redis-server", options, { cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.stdout!.on("data", (chunk: Buffer) => {
        if (chunk.includes("Ready to accept")) resolve();
      });
    });
  }
  async function stop(): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill("SIGKILL");
    await once(server, "exit");
  }

  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    /** Starts it again, empty, where it was. */
    start,
    /** Ends it as a crash would. */
    stop,
    freeze: () => server.kill("SIGSTOP"),
    thaw: () => server.kill("SIGCONT"),
    /** Runs a command in it. */
    async command(name: string, ...args: (string | number)[]): Promise<any> {
      const client = new Redis(port, "127.0.0.1");
      try {
        return await client.call(name, ...args);
      } finally {
        client.disconnect();
      }
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
