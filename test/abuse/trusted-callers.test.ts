import { expect } from "vitest";
import { atOnce, from } from "../support/client.ts";
import { openEventStream } from "../support/event-stream.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

const APP = from("2001:db8::5");
const SECOND_APP = from("192.0.2.7");
/** Not trusted, though in the same /64 as the first. */
const NEIGHBOUR = from("2001:db8::6");
const STRANGER = from("198.51.100.1");

const artist = (i: number) => `artist${String(i + 1).padStart(3, "0")}`;

const it = withNewWorld({
  TRUSTED_CALLERS: "2001:db8::5, 192.0.2.0/28",
  RATE_LIMIT_MAX: "2",
  RATE_LIMIT_WINDOW_SECONDS: 3_600,
  // One for each address block.
  STREAMS_MAX: "8",
  // Twenty names at once.
  SOCIAL_READS_PER_HOUR: "120",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "110000",
  MAX_PRIORITY_FEE_LAMPORTS: "5000",
});

it("trusted callers have no rate limit", async () => {
  const answers = await atOnce(10, () => world.lookup("creator", APP));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(answers[0]!.headers.has("ratelimit")).toBe(false);
  const { body } = await world.graphql("{ rateLimit { limit } }", {}, APP);
  expect(body).toEqual({ data: { rateLimit: null } });
  const of = (headers: Record<string, string>) =>
    Promise.all([1, 2, 3].map(async () => (await world.lookup("creator", headers)).status));
  expect((await of(NEIGHBOUR)).sort()).toEqual([200, 200, 429]);
});

it("trusted callers leave half of the fee budget to others", async () => {
  let collected = 0;
  let last;
  do {
    last = await world.collect(
      world.account(artist(collected)).id,
      collected % 2 ? APP : SECOND_APP,
    );
    if (last.status === 200) collected++;
  } while (last.status === 200);
  // A stranger's share would be an eighth: one fee.
  expect(collected).toBe(5);
  expect(last.body.message).toMatch(/^You have used your share/);
  expect((await world.collect(world.account(artist(30)).id, STRANGER)).body.success).toBe(true);
});

it("trusted callers keep the limits of streams", async () => {
  const open = () =>
    openEventStream(
      world.url,
      { query: 'subscription { wallet(handle: "creator") { address } }' },
      { headers: APP },
    );
  const first = await open();
  expect(first.status).toBe(200);
  expect((await open()).status).toBe(429);
  first.close();
});
