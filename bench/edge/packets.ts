/** Records a server's packets with Debian's `tcpdump`, which needs root, and takes the server's own time from them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryFolder } from "../../test/support/temporary-folder.ts";

/** A TCP packet with data, at the kernel's time in ms, between two ports of this machine. */
interface Packet {
  readonly at: number;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** A call to the chain, from its first packet to the answer's last. */
interface Call {
  readonly start: number;
  end?: number;
  text: string;
}

const HAS_DATA = "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0";
const BUFFER_KIB = 65_536;
/** tcpdump reads the kernel's buffer at least this often. */
const BUFFER_READ_MS = 1_000;
const PUBLIC_KEY = /[1-9A-HJ-NP-Za-km-z]{32,44}/g;

const portOf = (url: string) => Number(new URL(url).port);

/** Starts to record the packets of servers. The returned function ends that, and resolves to the packets. */
export async function recordPackets(urls: readonly string[]): Promise<() => Promise<Packet[]>> {
  const file = join(temporaryFolder(), "packets");
  const filter = `(${urls.map((url) => `tcp port ${portOf(url)}`).join(" or ")}) and (${HAS_DATA})`;
  const tcpdump = spawn("tcpdump", ["-i", "lo", "-B", String(BUFFER_KIB), "-w", file, filter], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let messages = "";
  tcpdump.stderr.setEncoding("utf8").on("data", (text: string) => (messages += text));
  while (!messages.includes("listening on")) {
    if (tcpdump.exitCode !== null) throw new Error(`tcpdump failed: ${messages}`);
    await Promise.race([once(tcpdump.stderr, "data"), once(tcpdump, "close")]);
  }
  return async () => {
    await sleep(2 * BUFFER_READ_MS);
    tcpdump.kill("SIGINT");
    await once(tcpdump, "close");
    if (!messages.includes("\n0 packets dropped by kernel"))
      throw new Error(`packets are missing: ${messages}`);
    return readPackets(readFileSync(file));
  };
}

/** Reads a capture file: a header of 24 bytes, then each packet with 16 bytes about it and an Ethernet header of 14. */
function readPackets(file: Buffer): Packet[] {
  const packets: Packet[] = [];
  for (let offset = 24; offset < file.length;) {
    const at = file.readUInt32LE(offset) * 1_000 + file.readUInt32LE(offset + 4) / 1_000;
    const end = offset + 16 + file.readUInt32LE(offset + 8);
    const ip = offset + 16 + 14;
    const tcp = ip + (file[ip]! & 0xf) * 4;
    const data = tcp + (file[tcp + 12]! >> 4) * 4;
    const [from, to] = [file.readUInt16BE(tcp), file.readUInt16BE(tcp + 2)];
    packets.push({ at, from, to, text: file.toString("latin1", data, end) });
    offset = end;
  }
  return packets;
}

/**
 * The own time of the server for each lookup, in ms, in ascending order: from its request to its response, without the
 * time of the chain call that read the wallet.
 */
export function ownTimes(packets: readonly Packet[], serverUrl: string, chainUrl: string): number[] {
  const [server, chain] = [portOf(serverUrl), portOf(chainUrl)];
  /** By the client's port. */
  const requestedAt = new Map<number, number>();
  /** By the server's port. */
  const calls = new Map<number, Call>();
  /** The last answered call for each address. */
  const answered = new Map<string, Call>();
  const times: number[] = [];
  for (const { at, from, to, text } of packets) {
    if (to === server) requestedAt.set(from, at);
    else if (to === chain) {
      const call = calls.get(from);
      if (call && call.end === undefined) call.text += text;
      else calls.set(from, { start: at, text });
    } else if (from === chain) {
      const call = calls.get(to)!;
      call.end = at;
      for (const [address] of call.text.matchAll(PUBLIC_KEY)) answered.set(address, call);
    } else {
      const call = answered.get(/"address":"(\w+)"/.exec(text)?.[1] ?? "");
      const start = requestedAt.get(to);
      if (call?.end === undefined || start === undefined)
        throw new Error(`no request or no call for ${text}`);
      times.push(at - start - (call.end - Math.max(call.start, start)));
    }
  }
  return times.sort((a, b) => a - b);
}
