import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Redis } from "ioredis";
import { endWithTests } from "./ended-children.ts";

export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

/**
 * Gives each test of a file an empty server: the same one, unless a test has stopped, frozen or
 * configured it.
 */
export function reuseRedis() {
  let server: RedisServer | undefined;
  const stop = async () => server?.stop();
  return {
    async empty(): Promise<RedisServer> {
      if (server?.isAsStarted()) await server.command("FLUSHALL");
      else {
        await stop();
        server = await startRedis();
      }
      return server;
    },
    stop,
  };
}

/**
 * Ports that the system does not give to sockets without a port, so that none takes a stopped
 * server's.
 */
let nextPort = 10_000 + 1_000 * Number(process.env.VITEST_POOL_ID ?? 0);

/** Starts a redis-server on a free port, without persistence. `more` returns further options. */
export async function startRedis(
  more: () => readonly string[] | Promise<readonly string[]> = () => [],
) {
  for (;;) {
    const server = await startAt(nextPort++, await more());
    // Another process may have taken the port first.
    if (server) return server;
  }
}

async function startAt(port: number, more: readonly string[]) {
  let server: ChildProcess;
  let isAsStarted = true;

  /** Returns false when the server exits at once, because another process has taken its port. */
  async function start(): Promise<boolean> {
    const common = [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--appendonly",
      "no",
    ];
    const options = [...common, ...more];
    server = spawn("redis-server", options, { cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
    endWithTests(server);
    return new Promise<boolean>((resolve, reject) => {
      server.once("error", reject);
      server.once("exit", () => {
        resolve(false);
      });
      server.stdout!.on("data", (chunk: Buffer) => {
        if (chunk.includes("Ready to accept")) resolve(true);
      });
    });
  }
  async function stop(): Promise<void> {
    isAsStarted = false;
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill("SIGKILL");
    await once(server, "exit");
  }

  if (!(await start())) return undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    /** Starts a stopped server again, empty, on the same port. */
    async start(): Promise<void> {
      if (!(await start()))
        throw new Error(`redis-server could not be started again on port ${port}`);
    },
    /** Kills the server, as a crash would. */
    stop,
    freeze() {
      isAsStarted = false;
      return server.kill("SIGSTOP");
    },
    thaw: () => server.kill("SIGCONT"),
    /** Whether nothing but its data has changed since it started. */
    isAsStarted: () => isAsStarted,
    async command(name: string, ...args: (string | number)[]): Promise<any> {
      if (["ACL", "CONFIG", "REPLICAOF"].includes(name)) isAsStarted = false;
      const client = new Redis(port, "127.0.0.1");
      try {
        return await client.call(name, ...args);
      } finally {
        client.disconnect();
      }
    },
  };
}
