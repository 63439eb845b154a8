import { Redis as Client } from "ioredis";
import { isRefusal, SILENT_CONNECTION_MS, toOptions } from "./redis-connection.ts";

const RECONNECT_MS = 500;
/** How often to ping: without pings, a dead connection would look like a quiet one. */
const PING_MS = 1_000;

/**
 * Receives a channel's messages on a separate connection. Messages sent during a disconnection are
 * lost. Reconnects automatically, in a cluster to the next of `urls`: every node receives all
 * messages.
 */
export function createSubscription(needs: {
  urls: readonly URL[];
  channel: string;
  onMessage: (message: string) => void;
  /** Called after each (re)connect. */
  onSubscribed: () => void;
  /** Called when Redis denies the user access to the channel. */
  onRefused: (reason: string) => void;
}) {
  const { urls, channel, onMessage, onSubscribed, onRefused } = needs;
  let client: Client;
  let isClosed = false;

  function connect(attempt: number): void {
    if (isClosed) return;
    client = new Client({
      ...toOptions(urls[attempt % urls.length]!),
      retryStrategy: () => null,
      // The check would need the command INFO, which an ACL may deny.
      enableReadyCheck: false,
      connectTimeout: SILENT_CONNECTION_MS,
      socketTimeout: SILENT_CONNECTION_MS,
    });
    const ping = setInterval(() => {
      client.ping().catch(() => undefined);
    }, PING_MS);
    ping.unref();
    // The connection that runs scripts reports the errors of Redis.
    client.on("error", () => undefined);
    client.on("message", (_channel, message) => {
      onMessage(message);
    });
    client.once("end", () => {
      clearInterval(ping);
      setTimeout(connect, RECONNECT_MS, attempt + 1).unref();
    });
    client.subscribe(channel).then(onSubscribed, (error: unknown) => {
      // The connection that runs scripts reports all other refusals, such as a wrong password.
      if (isRefusal(error) && error.message.startsWith("NOPERM")) onRefused(error.message);
      client.disconnect();
    });
  }
  connect(0);

  return {
    close(): void {
      isClosed = true;
      client.disconnect();
    },
  };
}
