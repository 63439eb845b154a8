import { Cluster, Redis as Client, ReplyError } from "ioredis";
import { connectionCodeOf } from "../observability/connection-error.ts";
import { KEY_PREFIX, redisKeys } from "./redis-keys.ts";
import { CLUSTER_REFUSAL, DATABASE_REFUSED, NO_ADDRESS } from "./redis-remedies.ts";
import type { ScriptArguments } from "./script.ts";

/**
 * A connection is replaced when a reply is pending and nothing arrives for this long
 * (`answerTimeoutMs` if longer).
 */
const SILENT_CONNECTION_MS = 3_000;
const LONGEST_RECONNECT_MS = 1_000;
/** How often to ping for messages: without pings, a dead connection would look like a quiet one. */
const PING_MS = 1_000;
const RESUBSCRIBE_MS = 500;
/** So many that they reach every master of a cluster, and the first two are in different slots. */
const PROBE_KEYS = Array.from({ length: 128 }, (_, i) => redisKeys.probe(i));

/** Checks that Redis answers, accepts writes, and that the user may use channels. */
const PROBE = `
for _, key in ipairs(KEYS) do redis.call('SET', key, '1', 'PX', 1000) end
redis.call('PUBLISH', KEYS[1], '')
return 1
`;

export interface Listener {
  readonly onMessage: (message: string) => void;
  /** Called when messages may have been missed: at first, and after each outage. */
  readonly onReconnect: () => void;
}

/**
 * Connects to one Redis server, or to all masters of the Redis Cluster at several URLs. One URL may
 * also lead to a cluster, which a probe finds. Reconnects automatically.
 */
export function createConnection(needs: {
  urls: readonly URL[];
  answerTimeoutMs: number;
  /** Called when the connection to the server, or to a master of the cluster, is lost. */
  onLost: () => void;
}) {
  const { urls, answerTimeoutMs, onLost } = needs;
  /** The last error of the connection or of a probe: why Redis does not answer as expected. */
  let reason = "";
  let lastCall = 0;
  let isEnding = false;
  const subscribers: Client[] = [];
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
    enableOfflineQueue: false,
  };
  let client = urls.length > 1 ? connectToCluster() : connectToServer();

  function connectToServer(): Client {
    const server = new Client({
      ...toOptions(urls[0]!),
      ...commonOptions,
      keyPrefix: KEY_PREFIX,
      retryStrategy: reconnectDelayMs,
    });
    server.on("error", (error) => {
      keepError(error);
      if (DATABASE_REFUSED.test(error.message)) server.disconnect(true);
    });
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
        redisOptions: { ...commonOptions, username, password, tls },
        enableOfflineQueue: false,
        enableReadyCheck: false,
        // Resend only scripts that a node refused: after a lost connection, a script may have run.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        clusterRetryStrategy: reconnectDelayMs,
        // Connect to host names, not to resolved addresses: TLS certificates are for names.
        dnsLookup: (name, callback) => {
          callback(null, name);
        },
      },
    );
    cluster.on("node error", keepError);
    // Without a listener, the client prints that all nodes have failed.
    cluster.on("error", () => undefined);
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
    reason = (isRefusal(error) ? undefined : connectionCodeOf(error)) ?? error.message;
  }

  function replaceConnection(): void {
    // Each `disconnect` adds a listener until the connection has closed.
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

  /**
   * Runs a script. Resolves to the result, or to an Error after at most `answerTimeoutMs`; never
   * rejects. Replies carry no name: each belongs to the first command without one. So after a lost
   * reply, every command gets the next one's, and the connection is replaced.
   */
  async function evaluate(text: string, { keys, args }: ScriptArguments): Promise<unknown> {
    const id = String(++lastCall);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    // If this process was busy, the answer is already in the socket and is read before.
    const timer = setTimeout(() => setImmediate(resolve, undefined), answerTimeoutMs);
    commandOf(text)(keys.length, ...keys, ...args, id).then(resolve, resolve);
    const reply = await promise;
    clearTimeout(timer);
    if (reply instanceof Error) return reply;
    if (Array.isArray(reply) && reply[0] === id) return reply[1] as unknown;
    replaceConnection();
    const problem = `no answer within ${answerTimeoutMs} ms`;
    return new Error(reply === undefined ? problem : "the answer is another script's");
  }

  /**
   * Whether Redis can be used: every master has answered as expected. Redis itself says whether it
   * is a cluster, because managed clusters have one host name: every node of a cluster refuses a
   * script whose keys are in different slots. A cluster is then used from the next probe on.
   */
  async function probe(): Promise<boolean> {
    const cluster = client instanceof Cluster ? client : undefined;
    const calls = cluster ? PROBE_KEYS.map((key) => [key]) : [PROBE_KEYS.slice(0, 2)];
    const answers = await Promise.all(calls.map((keys) => evaluate(PROBE, { keys, args: [] })));
    const isAnswering = answers.every((answer) => answer === 1);
    // To a master without an address, nobody can connect.
    const isNameless = cluster && Object.values(cluster.slots).some(([master]) => !master);
    const said = answers.find(isRefusal)?.message ?? (isNameless ? NO_ADDRESS : undefined);
    // Valkey 9 has numbered databases in a cluster, but the client cannot select them there.
    const isNumbered = toOptions(urls[0]!).db > 0;
    if (cluster || isNumbered || said === undefined || !CLUSTER_REFUSAL.test(said)) {
      // A probe without an answer does not take back what Redis said before.
      reason = isAnswering ? "" : (said ?? reason);
      return isAnswering;
    }
    client.off("close", onLost);
    client.disconnect();
    client = connectToCluster();
    return false;
  }

  /**
   * Receives a channel's messages on a separate connection. Messages sent during a disconnection are
   * lost. Reconnects automatically, in a cluster to the next of `urls`: every node receives all
   * messages.
   */
  function subscribe(channel: string, listener: Listener): void {
    const subscriber = new Client({
      ...toOptions(urls[0]!),
      ...commonOptions,
      retryStrategy(attempts) {
        Object.assign(subscriber.options, toOptions(urls[attempts % urls.length]!));
        return RESUBSCRIBE_MS;
      },
      // The listener learns of each subscription, so each is made here.
      autoResubscribe: false,
    });
    const ping = setInterval(() => {
      subscriber.ping().catch(() => undefined);
    }, PING_MS).unref();
    // The connection that runs scripts reports the errors of Redis.
    subscriber.on("error", () => undefined);
    subscriber.on("message", (_channel, message) => {
      listener.onMessage(message);
    });
    subscriber.on("ready", () => {
      subscriber.subscribe(KEY_PREFIX + channel).then(listener.onReconnect, (error: unknown) => {
        if (isRefusal(error)) subscriber.disconnect(true);
      });
    });
    subscriber.on("end", () => {
      clearInterval(ping);
    });
    subscribers.push(subscriber);
  }

  return {
    evaluate,
    probe,
    subscribe,
    reason: () => reason,
    close(): void {
      for (const each of [client, ...subscribers]) each.disconnect();
    },
  };
}

/** Whether Redis itself answered with an error. All other errors concern the connection. */
function isRefusal(answer: unknown): answer is Error {
  return answer instanceof ReplyError;
}

function toOptions(url: URL) {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || 6379),
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    db: Number(url.pathname.slice(1)),
    tls: url.protocol === "rediss:" ? {} : undefined,
  };
}

/** After this many failed attempts in a row. */
const reconnectDelayMs = (attempts: number) => Math.min(50 * 2 ** attempts, LONGEST_RECONNECT_MS);
