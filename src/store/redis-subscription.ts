import { Redis as Client } from "ioredis";
import { isRefusal, SILENT_CONNECTION_MS, toOptions } from "./redis-connection.ts";

const RECONNECT_MS = 500;
/** How often to ping: without pings, a dead connection would look like a quiet one. */
const PING_MS = 1_000;

/**
 * Receives a channel's messages on a separate connection. Messages sent during a disconnection are
 * lost. Reconnects automatically, in a cluster to the next of `urls`: every node receives all
 * messages. Returns a function that ends the connection.
 */
export function createSubscription(needs: {
  urls: readonly URL[];
  channel: string;
  onMessage: (message: string) => void;
  /** Called after each (re)connect. */
  onSubscribed: () => void;
  /** Called when Redis denies the user access to the channel. */
  onRefused: (reason: string) => void;
}): () => void {
  const { urls, channel, onMessage, onSubscribed, onRefused } = needs;
  const client = new Client({
    ...toOptions(urls[0]!),
    retryStrategy(attempts) {
      Object.assign(client.options, toOptions(urls[attempts % urls.length]!));
      return RECONNECT_MS;
    },
    // The callers hear of each subscription, so each is made here.
    autoResubscribe: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // The check would need the command INFO, which an ACL may deny.
    enableReadyCheck: false,
    connectTimeout: SILENT_CONNECTION_MS,
    socketTimeout: SILENT_CONNECTION_MS,
  });
  const ping = setInterval(() => {
    client.ping().catch(() => undefined);
  }, PING_MS).unref();
  // The connection that runs scripts reports the errors of Redis.
  client.on("error", () => undefined);
  client.on("message", (_channel, message) => {
    onMessage(message);
  });
  client.on("ready", () => {
    client.subscribe(channel).then(onSubscribed, (error: unknown) => {
      if (!isRefusal(error)) return;
      // The connection that runs scripts reports all other refusals, such as a wrong password.
      if (error.message.startsWith("NOPERM")) onRefused(error.message);
      client.disconnect(true);
    });
  });
  return () => {
    clearInterval(ping);
    client.disconnect();
  };
}
