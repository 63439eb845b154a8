import { afterEach, expect, it } from "vitest";
import { RENT_SYSVAR } from "../../src/chain/primitives/rent.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
afterEach(async () => {
  liar.stopLying();
  await world.close();
  await liar.close();
});

/** Makes the endpoint report another price of storage, in lamports per byte and year. */
function reportRent(lamportsPerByteYear: bigint, exemptionThreshold = 1): void {
  const data = Buffer.alloc(17);
  data.writeBigUInt64LE(lamportsPerByteYear);
  data.writeDoubleLE(exemptionThreshold, 8);
  liar.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      const lie = {
        ...value[keys.indexOf(RENT_SYSVAR)],
        data: [data.toString("base64"), "base64"],
      };
      return {
        context,
        value: keys.map((key: string, i: number) => (key === RENT_SYSVAR ? lie : value[i])),
      };
    },
    getMinimumBalanceForRentExemption: (_, [bytes]) =>
      (128 + Number(bytes)) * Number(lamportsPerByteYear) * exemptionThreshold,
  });
}
/** A gateway that prefers an endpoint that reports this price to an honest one, or has no other. */
const start = async (lamportsPerByteYear: bigint, { withHonest = false } = {}) => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    reportRent(lamportsPerByteYear);
    return { SOLANA_RPC_URL: withHonest ? `${liar.url},${sandbox.rpc.url}` : liar.url };
  });
};
const lookup = async () => (await world.lookup("creator")).body;
const collect = async () => (await world.collect(world.account("creator").id)).body;
const FIVE_SOL_PER_ACCOUNT = 5_000_000_000n / 128n;

it.each([
  ["5 SOL for an empty account", FIVE_SOL_PER_ACCOUNT],
  ["nothing", 0n],
])(
  "a node that reports a rent of %s fails the lookups that it answers, and no later one",
  async (_, rate) => {
    await start(rate);
    expect((await lookup()).error).toBe("LOOKUP_FAILED");
    liar.stopLying();
    expect((await lookup()).balance.vault).toBe("3.1000");
  },
);

it("a node that reports a wrong rent is not used while another node answers", async () => {
  await start(FIVE_SOL_PER_ACCOUNT, { withHonest: true });
  expect((await lookup()).balance.vault).toBe("3.1000");
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
});

it("a price of storage that the cluster changes counts from the next lookup on", async () => {
  await start(5_080n);
  const collectable = async () => {
    const { body } = await world.graphql(
      `{ wallet(handle: "creator") { balance { vaultLamports } } }`,
    );
    return BigInt(body.data.wallet.balance.vaultLamports);
  };
  const before = await collectable();
  reportRent(696n);
  expect((await collectable()) - before).toBe(128n * (5_080n - 696n));
  reportRent(3_480n, 2);
  expect(before - (await collectable())).toBe(128n * (6_960n - 5_080n));
});
