import { PublicKey } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import { decodeFeeAccount } from "../../../src/chain/launchpad/fee-accounts.ts";
import { decodeCoin, toCoinFees } from "../../../src/chain/launchpad/coin-fees.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import {
  AMM,
  FEES,
  pda,
  PUMP,
  SYSTEM_PROGRAM,
  WSOL,
} from "../../support/launchpad-instructions.ts";

const MINT = "BsZgJaxMAUbfUHZ3wbFEEXCUWwRhZvYHYMRCCpEsxi2Y";
const USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const CREATOR = "71rXrfEcvWAKaf73b3CpuLvqc2pSNojePrxUq7R8jxuX";
const SOMEBODY = "BNwS4hmmJcNTm3fFr2uCfLkiGD6N29k8UPKVMYEWADbS";
const SHARING_CONFIG = pda(FEES, "sharing-config", new PublicKey(MINT).toBytes());

interface Fields {
  complete?: boolean;
  creator?: string;
  quoteMint?: string;
  cashback?: boolean;
  holderReward?: boolean;
  fees?: bigint;
  bytes?: number;
  lamports?: bigint;
  owner?: string;
  discriminator?: string;
}

/**
 * An account with the fields at the documented offsets: creator, cashback, quote mint, holder
 * reward, fees.
 */
function account(
  offsets: readonly [number, number, number, number, number],
  defaults: Required<Pick<Fields, "owner" | "discriminator" | "quoteMint">>,
  size: number,
  fields: Fields,
) {
  const { creator = CREATOR, cashback = false, holderReward = false, fees = 0n } = fields;
  const { owner, discriminator, quoteMint } = { ...defaults, ...fields };
  const data = Buffer.alloc(300);
  Buffer.from(discriminator, "hex").copy(data);
  if (fields.complete) data[48] = 1;
  new PublicKey(creator).toBuffer().copy(data, offsets[0]);
  data[offsets[1]] = cashback ? 1 : 0;
  new PublicKey(quoteMint).toBuffer().copy(data, offsets[2]);
  data[offsets[3]] = holderReward ? 1 : 0;
  data.writeBigUInt64LE(fees, offsets[4]);
  return {
    owner,
    lamports: toLamports(fields.lamports ?? 0),
    isRounded: false,
    data: data.subarray(0, fields.bytes ?? size),
  };
}

const curve = (fields: Fields = {}) =>
  account(
    [49, 82, 83, 124, 125],
    { owner: PUMP, discriminator: "17b7f83760d8ac60", quoteMint: SYSTEM_PROGRAM },
    166,
    fields,
  );
const pool = (fields: Fields = {}) =>
  account(
    [211, 244, 75, 270, 279],
    { owner: AMM, discriminator: "f19a6d0411b16dbc", quoteMint: WSOL },
    287,
    fields,
  );

interface Places {
  curve?: ReturnType<typeof account>;
  pool?: ReturnType<typeof account>;
}
const RENT = 5_080;
const decode = ({ curve, pool }: Places) => decodeCoin(coinAddressesOf(MINT), [curve, pool], RENT);
const read = (places: Places) =>
  toCoinFees(decode(places), CREATOR).map(
    ({ mint, stage, quoteMint, amount, shareBps, reason }) => ({
      ...{ mint, stage, quoteMint, amount, shareBps, reason },
    }),
  );
const reasons = (accounts: Places) => read(accounts).map(({ stage, reason }) => [stage, reason]);

const UNCOLLECTABLE_COINS: readonly (readonly [reason: string, coin: string, fields: Fields])[] = [
  ["NOTHING_WAITING", "without fees", { fees: 0n }],
  ["OTHER_CREATOR", "with another creator", { creator: SOMEBODY }],
  ["OTHER_CREATOR", "without a creator", { creator: SYSTEM_PROGRAM }],
  [
    "OTHER_CREATOR",
    "with another creator, whose fees go to traders",
    { creator: SOMEBODY, cashback: true },
  ],
  ["SHARED", "with a sharing config", { creator: SHARING_CONFIG }],
  ["HOLDER_REWARDS", "for its holders", { creator: SOMEBODY, holderReward: true }],
  ["HOLDER_REWARDS", "for its holders, though it names the account", { holderReward: true }],
  ["CASHBACK", "for its traders", { cashback: true }],
  ["OTHER_CURRENCY", "in another currency", { quoteMint: USDC }],
  ["OTHER_CURRENCY", "in another currency, without fees", { quoteMint: USDC, fees: 0n }],
];

describe("a coin's fees", () => {
  it("are collectable on the curve and in the pool of a coin whose creator is the account", () => {
    const collectable = { mint: MINT, quoteMint: WSOL, shareBps: 10_000, reason: null };
    const onCurve = { ...collectable, stage: "CURVE", amount: 5n };
    const inPool = { ...collectable, stage: "POOL", amount: 2n ** 64n - 1n };
    expect(read({ curve: curve({ fees: 5n }) })).toEqual([onCurve]);
    expect(read({ curve: curve({ fees: 5n }), pool: pool({ fees: inPool.amount }) })).toEqual([
      onCurve,
      inPool,
    ]);
  });

  it("are collectable whether the curve names wrapped SOL or no mint", () => {
    expect(read({ curve: curve({ fees: 5n, quoteMint: WSOL }) })[0]!.quoteMint).toBe(WSOL);
  });

  it("have no entry on a migrated coin's curve, unless some wait there", () => {
    expect(reasons({ curve: curve(), pool: pool({ fees: 5n }) })).toEqual([["POOL", null]]);
    expect(reasons({ curve: curve({ creator: SYSTEM_PROGRAM }), pool: pool() })).toEqual([
      ["POOL", "NOTHING_WAITING"],
    ]);
    expect(reasons({ pool: pool({ fees: 5n }) })).toEqual([["POOL", null]]);
  });

  it.each(UNCOLLECTABLE_COINS)(
    "are not collectable, because %s, of a coin %s",
    (reason, _, fields) => {
      const { quoteMint = WSOL, fees = 7n } = fields;
      const shareBps = (fields.creator ?? CREATOR) === CREATOR ? 10_000 : 0;
      const expected = { mint: MINT, quoteMint, amount: fees, shareBps, reason };
      expect(read({ curve: curve({ fees: 7n, ...fields }) })).toEqual([
        { ...expected, stage: "CURVE" },
      ]);
      expect(read({ pool: pool({ fees: 7n, ...fields }) })).toEqual([
        { ...expected, stage: "POOL" },
      ]);
    },
  );

  it("are unknown in the pool of a coin in another currency, whatever is at the address of one with SOL", () => {
    const elsewhere = { stage: "POOL", quoteMint: USDC, amount: null, reason: "OTHER_CURRENCY" };
    const migrated = { complete: true, quoteMint: USDC };
    for (const wrong of [{}, { pool: pool({ fees: 5n }) }]) {
      expect(read({ curve: curve(migrated), ...wrong })).toMatchObject([elsewhere]);
      const onCurve = { stage: "CURVE", quoteMint: USDC, amount: 3n, reason: "OTHER_CURRENCY" };
      const both = [onCurve, elsewhere];
      expect(read({ curve: curve({ ...migrated, fees: 3n }), ...wrong })).toMatchObject(both);
    }
    const inSol = curve({ complete: true });
    expect(read({ curve: inSol, pool: pool({ fees: 5n }) })).toMatchObject([
      { stage: "POOL", amount: 5n },
    ]);
  });

  it("depend on each place's own creator, because they can differ", () => {
    expect(
      reasons({ curve: curve({ fees: 5n }), pool: pool({ fees: 5n, creator: SHARING_CONFIG }) }),
    ).toEqual([
      ["CURVE", null],
      ["POOL", "SHARED"],
    ]);
  });

  it("do not exist without a curve or pool of the launch platform's programs", () => {
    const nowhere = { stage: null, quoteMint: null, amount: null, shareBps: 0 };
    const nothing = [{ mint: MINT, ...nowhere, reason: "NO_SUCH_COIN" }];
    expect(read({})).toEqual(nothing);
    for (const wrong of [
      { owner: AMM },
      { owner: SYSTEM_PROGRAM },
      { owner: undefined },
      { discriminator: "f19a6d0411b16dbc" },
      { bytes: 7 },
    ] as Fields[]) {
      expect(read({ curve: curve({ fees: 5n, ...wrong }) }), JSON.stringify(wrong)).toEqual(
        nothing,
      );
    }
    expect(read({ pool: pool({ fees: 5n, owner: PUMP }) })).toEqual(nothing);
    expect(read({ pool: pool({ fees: 5n, discriminator: "17b7f83760d8ac60" }) })).toEqual(nothing);
    // The accounts of one place in the other place.
    expect(read({ curve: pool({ fees: 5n }), pool: curve({ fees: 5n }) })).toEqual(nothing);
  });

  it.each([
    [49, "OTHER_CREATOR", 0n],
    [81, "NOTHING_WAITING", 0n],
    [140, "NOTHING_WAITING", 0n],
    [141, null, 7n],
    [256, null, 7n],
  ] as const)("on a curve of %i bytes: %s", (bytes, reason, amount) => {
    expect(read({ curve: curve({ fees: 7n, bytes }) })).toMatchObject([{ reason, amount }]);
  });

  it.each([
    [211, "OTHER_CREATOR", 0n],
    [243, "NOTHING_WAITING", 0n],
    [286, "NOTHING_WAITING", 0n],
    [287, null, 7n],
  ] as const)("in a pool of %i bytes: %s", (bytes, reason, amount) => {
    expect(read({ pool: pool({ fees: 7n, bytes }) })).toMatchObject([{ reason, amount }]);
  });
});

describe("what a sweep's payer adds", () => {
  const minimum = (bytes: number) => BigInt(128 + bytes) * 5_080n;
  const topUpOf = (stage: "CURVE" | "POOL", fields: Fields) =>
    decodeFeeAccount(stage, (stage === "CURVE" ? curve : pool)(fields), RENT)?.topUp;

  it.each([
    ["nothing to a whole curve", 166, minimum(166) + 7n, 0n],
    ["what a whole curve lacks", 166, minimum(166), 7n],
    ["what an old curve needs to grow", 151, minimum(151) + 7n, minimum(166) - minimum(151)],
    ["less to an old curve of a higher rent", 151, minimum(166), 7n],
    ["what a longer curve lacks", 256, minimum(166) + 7n, minimum(256) - minimum(166)],
    ["at most a curve's minimum", 166, 0n, minimum(166)],
  ])("%s", (_, bytes, lamports, topUp) => {
    expect(topUpOf("CURVE", { fees: 7n, bytes, lamports })).toBe(topUp);
  });

  it("covers the reserves of a curve", () => {
    const data = Buffer.from(curve({ fees: 7n }).data.subarray(0, 166));
    data.writeBigUInt64LE(1_000n, 32);
    data.writeBigUInt64LE(20n, 133);
    const account = { ...curve({ fees: 7n }), data, lamports: toLamports(minimum(166)) };
    expect(decodeFeeAccount("CURVE", account, RENT)?.topUp).toBe(1_027n);
  });

  it.each([
    ["nothing to a whole pool, whatever it holds", 287, 0n, 0n],
    ["what an old pool needs to grow", 271, minimum(271), minimum(287) - minimum(271)],
    ["nothing to an old pool that holds enough", 271, minimum(287), 0n],
  ])("%s", (_, bytes, lamports, topUp) => {
    expect(topUpOf("POOL", { fees: 7n, bytes, lamports })).toBe(topUp);
  });

  it("depends on the whole length of an account of which less was read", () => {
    const account = { ...curve({ bytes: 166, lamports: minimum(166) }), space: 256 };
    expect(decodeFeeAccount("CURVE", account, RENT)?.topUp).toBe(minimum(256) - minimum(166));
  });
});
