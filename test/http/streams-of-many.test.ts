import { afterEach, describe, expect } from "vitest";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { it, world } from "../support/fixtures.ts";

const WATCH = `subscription Watch($ids: [String!]!) {
  walletsById(socialIds: $ids) { id balance { vaultLamports totalLamports } }
}`;
const SOL = 10n ** 9n;

let streams: EventStream[] = [];
afterEach(async () => {
  for (const { close } of streams) close();
  streams = [];
  await eventually(async () => {
    expect((await world.request("/metrics")).body).toContain("tributary_streams_open 0\n");
  });
});

async function open(ids: readonly string[], address = "192.0.2.1"): Promise<EventStream> {
  const stream = await openEventStream(
    world.url,
    { query: WATCH, variables: { ids } },
    { address },
  );
  streams.push(stream);
  return stream;
}
const artists = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) =>
    world.account(`artist${String(from + i).padStart(3, "0")}`),
  );
const idsOf = (accounts: readonly { readonly id: string }[]) => accounts.map(({ id }) => id);
const wallets = (stream: EventStream): any[] => stream.events().map(({ data }) => data.walletsById);
const newest = (stream: EventStream) =>
  new Map(wallets(stream).map(({ id, balance }) => [id, BigInt(balance.totalLamports)]));

describe("a stream of many wallets", () => {
  it("shows 100 wallets beside collects: none goes back in time, and all end as on the chain", async () => {
    const { chain } = world.sandbox;
    const accounts = artists(1, 100);
    const balancesOf = ({ address, creatorVault }: (typeof accounts)[number]) =>
      chain.balance(address) + chain.balance(creatorVault) - chain.rentExemptMinimum(0);
    for (const { creatorVault } of accounts) chain.setBalance(creatorVault, SOL);
    const stream = await open(idsOf(accounts));
    await eventually(() => {
      expect(newest(stream).size).toBe(100);
    });
    for (const { id, creatorVault } of accounts.slice(0, 10)) {
      chain.setBalance(creatorVault, chain.balance(creatorVault) + SOL);
      expect((await world.collect(id)).body).toMatchObject({ success: true });
      chain.setBalance(creatorVault, chain.balance(creatorVault) + SOL);
    }
    await eventually(() => {
      expect(newest(stream)).toEqual(
        new Map(accounts.map((account) => [account.id, balancesOf(account)])),
      );
    });
    // Fees only arrive: a total that falls is one from before.
    const totals = new Map<string, bigint>();
    for (const { id, balance } of wallets(stream)) {
      const total = BigInt(balance.totalLamports);
      expect(total).toBeGreaterThanOrEqual(totals.get(id) ?? 0n);
      totals.set(id, total);
    }
  });

  it("shows only the wallet that has changed, and a repeated id once", async () => {
    const [one, other] = artists(10, 11);
    const stream = await open(idsOf([one!, other!, one!]));
    await eventually(() => {
      expect(newest(stream).size).toBe(2);
    });
    world.sandbox.chain.setBalance(other!.creatorVault, 7n * SOL);
    await eventually(() => {
      expect(wallets(stream)).toHaveLength(3);
    });
    expect(wallets(stream)[2].id).toBe(other!.id);
  });

  it("is refused if its address would follow more than 100 accounts in all its streams", async () => {
    const first = await open(idsOf(artists(1, 60)));
    const refused = await open(idsOf(artists(1, 41)));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    await eventually(() => {
      expect(refused.text()).toContain("the maximum is 100 from one address");
    });
    expect((await open(idsOf(artists(1, 40)))).status).toBe(200);
    first.close();
    await eventually(async () => {
      expect((await open(idsOf(artists(1, 60)))).status).toBe(200);
    });
  });

  it("counts accounts in the share of an address block", async () => {
    expect((await open(idsOf(artists(1, 100)), "198.51.100.1")).status).toBe(200);
    expect((await open(idsOf(artists(1, 26)), "198.51.100.2")).status).toBe(429);
    expect((await open(idsOf(artists(1, 25)), "198.51.100.3")).status).toBe(200);
  });

  it.each([
    ["no id", [], "BAD_REQUEST", {}],
    ["more than 100 ids", Array.from({ length: 101 }, (_, i) => String(i + 1)), "BAD_REQUEST", {}],
    ["an invalid id", ["1", "x"], "INVALID_SOCIAL_ID", { socialId: "x" }],
  ])("of %s is refused", async (_name, ids, code, extensions) => {
    const stream = await open(ids);
    await eventually(() => {
      expect(stream.end()).toBeDefined();
    });
    const [event] = stream.events();
    const { errors } = event ?? JSON.parse(stream.text());
    expect(errors[0].extensions).toMatchObject({ code, ...extensions });
  });
});
