import { Cluster, Command, Redis as Client, ReplyError } from "ioredis";
import { connectionCodeOf } from "../observability/connection-error.ts";
import { nextWaitMs } from "../time/backoff.ts";
import { KEY_PREFIX } from "./redis-keys.ts";
import type { ScriptArguments } from "./script.ts";

/**
 * A connection is replaced when a reply is pending and nothing arrives for this long
 * (`answerTimeoutMs` if longer).
 */
export const SILENT_CONNECTION_MS = 3_000;
const RECONNECT = { firstMs: 100, longestMs: 1_000 };
const CLUSTER_SLOTS = 16_384;

/**
 * Connects to one Redis server, or to all masters of the Redis Cluster at several URLs. One URL may
 * also lead to a cluster, which `useCluster` then connects to. Reconnects automatically.
 */
export function createConnection(needs: {
  urls: readonly URL[];
  answerTimeoutMs: number;
  /** Called when the connection to the server, or to a master of the cluster, is lost. */
  onLost: () => void;
}) {
  const { urls, answerTimeoutMs, onLost } = needs;
  let lastError = "";
  let isNoCluster = false;
  let lastCall = 0;
  let isEnding = false;
  const commonOptions = {
    // Do not resend the scripts of a broken connection: their callers no longer wait.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: Math.max(SILENT_CONNECTION_MS, answerTimeoutMs),
    connectTimeout: SILENT_CONNECTION_MS,
    // READONLY: a failover moved the host name to another server, but this connection still goes to
    // the old one.
    reconnectOnError: ({ message }: Error) => message.startsWith("READONLY"),
    // The probe tells whether Redis can be used. The check would need the commands INFO and CLUSTER
    // INFO, which an ACL may deny.
    enableReadyCheck: false,
    keyPrefix: KEY_PREFIX,
  };
  let client = urls.length > 1 ? connectToCluster() : connectToServer();

  function connectToServer(): Client {
    const server = new Client({
      ...toOptions(urls[0]!),
      ...commonOptions,
      enableOfflineQueue: false,
      retryStrategy: createReconnectDelay(),
    });
    server.on("error", keepError);
    server.on("close", onLost);
    return server;
  }

  function connectToCluster(): Cluster {
    const nodes = urls.map(toOptions);
    const { username, password, tls } = nodes[0]!;
    const cluster = new Cluster(
      nodes.map(({ host, port }) => ({ host, port })),
      {
        keyPrefix: KEY_PREFIX,
        redisOptions: { ...commonOptions, keyPrefix: "", username, password, tls },
        enableOfflineQueue: false,
        enableReadyCheck: false,
        // Resend only scripts that a node refused: after a lost connection, a script may have run.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        clusterRetryStrategy: createReconnectDelay(),
        // Connect to host names, not to resolved addresses: TLS certificates are for names.
        dnsLookup: (name, callback) => {
          callback(null, name);
        },
      },
    );
    cluster.on("error", ({ lastNodeError }: { lastNodeError?: Error }) => {
      isNoCluster ||=
        urls.length > 1 && (lastNodeError?.message.includes("cluster support disabled") ?? false);
    });
    cluster.on("node error", keepError);
    cluster.on("-node", (node: Client) => {
      if (!node.options.readOnly) onLost();
    });
    return cluster;
  }

  /**
   * Keeps only the code of a broken connection, or the message: the client's errors contain
   * commands, and so the password.
   */
  function keepError(error: Error): void {
    lastError = (isRefusal(error) ? undefined : connectionCodeOf(error)) ?? error.message;
  }

  /**
   * Replies carry no name: each belongs to the first command without one. So after a lost reply,
   * every command gets the next one's, and the connection is of no use any more.
   */
  function replaceConnection(): void {
    if (isEnding || client.status !== "ready") return;
    isEnding = true;
    client.once("close", () => (isEnding = false));
    client.disconnect(true);
  }

  /** Returns the command of a script, which sends the script's text only once per connection. */
  function commandOf(text: string): (...args: (string | number)[]) => Promise<unknown> {
    const commands = client as unknown as Record<string, ReturnType<typeof commandOf>>;
    // Named by its text.
    if (!Object.hasOwn(commands, text))
      client.defineCommand(text, {
        lua: `local function run() ${text}\nend return {ARGV[#ARGV], run()}`,
      });
    return commands[text]!.bind(client);
  }

  return {
    isCluster: () => client.isCluster,
    database: toOptions(urls[0]!).db,

    /**
     * Runs a script. Resolves to the result, or to an Error after at most `answerTimeoutMs`; never
     * rejects. Returns no other script's answer, also after a lost reply.
     */
    async evaluate(text: string, { keys, args }: ScriptArguments): Promise<unknown> {
      const id = String(++lastCall);
      const { promise, resolve } = Promise.withResolvers<unknown>();
      let immediate: NodeJS.Immediate | undefined;
      const timer = setTimeout(() => {
        // If this process was busy, the answer is already in the socket and is read before this
        // runs.
        immediate = setImmediate(() => {
          resolve(new Error(`no answer within ${answerTimeoutMs} ms`));
          replaceConnection();
        });
      }, answerTimeoutMs);
      commandOf(text)(keys.length, ...keys, ...args, id).then(resolve, resolve);
      const reply = await promise;
      clearTimeout(timer);
      clearImmediate(immediate);
      if (reply instanceof Error) return reply;
      if (Array.isArray(reply) && reply[0] === id) return reply[1] as unknown;
      replaceConnection();
      return new Error("the answer is another script's");
    },

    /** Connects to the cluster at the URLs, instead of to the one server there. */
    useCluster(): void {
      client.off("close", onLost);
      client.disconnect();
      client = connectToCluster();
    },

    /**
     * Returns one key for each master, made by `keyOf`; no keys while some slots of the cluster
     * have no master.
     */
    keyOnEachMaster(keyOf: (index: number) => string): string[] {
      if (!(client instanceof Cluster)) return [keyOf(0)];
      const { slots } = client;
      const masters = new Set(Object.values(slots).map(([master]) => master));
      if (Object.keys(slots).length < CLUSTER_SLOTS) return [];
      const keys: string[] = [];
      for (let i = 0; masters.size > 0; i++) {
        const slot = new Command("get", [KEY_PREFIX + keyOf(i)]).getSlot();
        if (masters.delete(slots[slot]?.[0])) keys.push(keyOf(i));
      }
      return keys;
    },

    /** Whether the cluster names masters without an address, to which nobody can connect. */
    hasUnknownNodes: () =>
      client instanceof Cluster && Object.values(client.slots).some(([master]) => !master),

    lastError: () => lastError,
    /** Whether several URLs are set, but their servers are not in cluster mode. */
    isNoCluster: () => isNoCluster,
    close(): void {
      client.disconnect();
    },
  };
}

/** Whether Redis itself answered with an error. All other errors concern the connection. */
export function isRefusal(answer: unknown): answer is Error {
  return answer instanceof ReplyError;
}

export function toOptions(url: URL) {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || 6379),
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    db: Number(url.pathname.slice(1)),
    tls: url.protocol === "rediss:" ? {} : undefined,
  };
}

/** Returns a function from the number of failed attempts in a row to the delay before the next. */
function createReconnectDelay() {
  let delayMs: number | undefined;
  return (attempts: number): number => {
    delayMs = nextWaitMs(attempts === 1 ? undefined : delayMs, RECONNECT);
    return delayMs;
  };
}
