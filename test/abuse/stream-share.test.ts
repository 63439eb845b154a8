import { afterEach, beforeEach, expect } from "vitest";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

const QUERY = 'subscription { walletById(socialId: "1") { id } }';
const STREAMS_MAX = 48;
const SHARE = STREAMS_MAX / 8;
const ADDRESSES = 12;
const STREAMS_PER_ADDRESS = 5;
/** How many of the attack's streams are refused. */
const REFUSED = ADDRESSES * STREAMS_PER_ADDRESS - SHARE;

const it = withNewWorld({ RATE_LIMIT_MAX: "1000", STREAMS_MAX: String(STREAMS_MAX) });
let open: EventStream[];
beforeEach(() => {
  open = [];
});
afterEach(() => {
  for (const { close } of open) close();
});

async function openAt(address: string): Promise<EventStream> {
  const stream = await openEventStream(world.url, { query: QUERY }, { address });
  if (stream.status === 200) open.push(stream);
  return stream;
}

/** Opens streams from each address; returns how many were refused. */
async function attack(addresses: readonly string[]): Promise<number> {
  let refused = 0;
  for (const address of addresses) {
    const streams = await Promise.all(
      Array.from({ length: STREAMS_PER_ADDRESS }, () => openAt(address)),
    );
    refused += streams.filter(({ status }) => status === 429).length;
  }
  return refused;
}
const addresses = (toAddress: (i: number) => string) =>
  Array.from({ length: ADDRESSES }, (_, i) => toAddress(i));

it("12 addresses of an IPv6 /48 get an eighth of all streams", async () => {
  const [neighbour, stranger] = ["2001:db8:1:ffff::1", "2001:db8:2::1"];
  expect(await attack(addresses((i) => `2001:db8:1:${i}::1`))).toBe(REFUSED);
  expect(open).toHaveLength(SHARE);

  const refused = await openAt(neighbour);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  await eventually(() => {
    expect(JSON.parse(refused.text()).errors).toMatchObject([
      {
        message: expect.stringContaining(`maximum is ${SHARE} from one IPv4 /24 or IPv6 /48`),
        extensions: { code: "RATE_LIMITED" },
      },
    ]);
  });

  expect((await openAt(stranger)).status).toBe(200);
  open[0]!.close();
  await eventually(async () => {
    expect((await openAt(neighbour)).status).toBe(200);
  });
});

it("an IPv6 /32 gets a quarter of all streams, however many /48s open them", async () => {
  const refused = await attack(addresses((i) => `2001:db8:${i}::1`));
  expect(open).toHaveLength(STREAMS_MAX / 4);
  expect(refused).toBe(ADDRESSES * STREAMS_PER_ADDRESS - STREAMS_MAX / 4);
  expect((await openAt("2001:db9::1")).status).toBe(200);
});
