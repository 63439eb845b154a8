import { createPublicKey, verify } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  VersionedMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { Registry } from "@prometheus-io/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFeeBudget } from "../../../src/chain/collect/fee-budget.ts";
import { createFeePayer } from "../../../src/chain/collect/fee-payer.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import * as launchpad from "../../../src/chain/launchpad/instructions.ts";
import { DerivedCreator } from "../../../src/chain/launchpad/vaults.ts";
import { PUMP, toTransactionInstruction } from "../../support/launchpad-instructions.ts";
import {
  compileLegacy,
  compileVersion0,
  compileVersion1,
  compileWithConfig,
  LOADED_DATA_LIMIT,
} from "../../support/messages.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { createBudgetMetrics } from "../../../src/fairness/budget-metrics.ts";

const SPKI_ED25519 = Buffer.from("302a300506032b6570032100", "hex");
const keypair = Keypair.generate();
const programId = new PublicKey(PUMP);
const budget = (lamports: number) =>
  createFeeBudget({
    feePayer: keypair.publicKey.toBase58(),
    feeBudgetLamportsPerHour: toLamports(lamports),
    maxPriorityFeeLamports: toLamports(lamports),
    maxRentLamports: toLamports(0),
    redis: undefined,
    metrics: createBudgetMetrics(new Registry()),
  });
const spending = () => ({
  spendable: 10n ** 12n,
  rent: toLamports(0),
  sweeps: [],
  accounts: [{ moved: toLamports(10 ** 9), blocks: ["caller"] }],
});
/** Its `sign` throws why it is refused. */
function newFeePayer(maxPriorityFeeLamports: number, feeBudgetLamportsPerHour: number) {
  const payer = createFeePayer({
    keypair,
    maxPriorityFeeLamports: toLamports(maxPriorityFeeLamports),
    feeBudgetLamportsPerHour: toLamports(feeBudgetLamportsPerHour),
    budget: budget(feeBudgetLamportsPerHour),
  });
  return {
    ...payer,
    async sign(...message: Parameters<typeof payer.sign>) {
      const result = await payer.sign(...message);
      if (result.kind === "refused") throw result.errors[0]!.get("caller")!;
      return result;
    },
  };
}
const feePayer = newFeePayer(1_000, 1_000_000);
const other = Keypair.generate().publicKey;
const call = (
  program: PublicKey,
  ...accounts: { pubkey: PublicKey; isSigner: boolean; isWritable: boolean }[]
) => new TransactionInstruction({ programId: program, keys: accounts, data: Buffer.alloc(8) });
const limit = (units: number) => ComputeBudgetProgram.setComputeUnitLimit({ units });
const price = (microLamports: bigint) =>
  ComputeBudgetProgram.setComputeUnitPrice({ microLamports });
const message = compileVersion1;
/** A message that the fee payer pays for. */
const own = (...instructions: TransactionInstruction[]) =>
  message(keypair.publicKey, ...instructions);
const expectRefused = (signing: Promise<unknown>) =>
  expect(signing).rejects.toThrow("refused to sign");

afterEach(() => {
  vi.useRealTimers();
});

describe("the fee payer", () => {
  it("signs calls to the allowed programs", async () => {
    const allowed = own(
      limit(1),
      call(programId, { pubkey: other, isSigner: false, isWritable: true }),
    );
    const transaction = await feePayer.sign(allowed, spending());
    expect(transaction.fee).toBe(5_000n);
    const signed = VersionedTransaction.deserialize(Buffer.from(transaction.base64, "base64"));
    expect(signed.message).toEqual(VersionedMessage.deserialize(allowed));
    expect(signed.signatures).toHaveLength(1);
    expect(getBase58Decoder().decode(signed.signatures[0]!)).toBe(transaction.signature);
    const key = createPublicKey({
      key: Buffer.concat([SPKI_ED25519, keypair.publicKey.toBytes()]),
      ...{ format: "der", type: "spki" },
    });
    expect(verify(null, allowed, key, signed.signatures[0]!)).toBe(true);
  });

  it("computes a transaction's fee as 5,000 lamports plus the price of its unit limit, rounded up", async () => {
    const priced = own(limit(10_001), price(99_990n), call(programId));
    expect((await feePayer.sign(priced, spending())).fee).toBe(6_000n);
  });

  it.each([
    ["a call to another program", own(limit(1), call(other))],
    [
      "a transfer from the fee payer",
      own(
        limit(1),
        SystemProgram.transfer({ fromPubkey: keypair.publicKey, toPubkey: other, lamports: 1 }),
      ),
    ],
    [
      "a call with the fee payer among its accounts",
      own(
        limit(1),
        call(programId, { pubkey: keypair.publicKey, isSigner: false, isWritable: true }),
      ),
    ],
    ["a transaction with another fee payer", message(other, limit(1), call(programId))],
    [
      "a transaction with a second signer",
      own(limit(1), call(programId, { pubkey: other, isSigner: true, isWritable: false })),
    ],
    ["a priority fee above the cap", own(limit(10_001), price(100_000n), call(programId))],
    ["a unit price without a unit limit", own(price(1n), call(programId))],
    [
      "a request for a larger heap",
      own(limit(1), ComputeBudgetProgram.requestHeapFrame({ bytes: 65_536 })),
    ],
    ["a message with trailing bytes", Buffer.concat([own(limit(1)), Buffer.of(0)])],
  ])("refuses %s", async (_name, rejected) => {
    await expectRefused(feePayer.sign(rejected, spending()));
  });

  it("refuses a message that names its account twice", async () => {
    const bytes = Buffer.from(
      own(limit(1), call(programId, { pubkey: other, isSigner: false, isWritable: true })),
    );
    keypair.publicKey.toBuffer().copy(bytes, bytes.indexOf(other.toBuffer()));
    await expectRefused(feePayer.sign(bytes, spending()));
  });

  it("reserves nothing for a message that it refuses", async () => {
    const poor = newFeePayer(0, 12_000);
    await expectRefused(poor.sign(own(limit(1), call(other)), spending()));
    expect(await poor.sign(own(limit(1), call(programId)), spending())).toBeDefined();
  });
});

describe("the fee payer", () => {
  const allowed = { computeUnitLimit: 1 };
  const version1 = (
    config: Parameters<typeof compileWithConfig>[0],
    ...instructions: TransactionInstruction[]
  ) => compileWithConfig(config, keypair.publicKey, ...instructions);

  it.each<[string, Uint8Array]>([
    ["of a legacy transaction", compileLegacy(keypair.publicKey, limit(1), call(programId))],
    ["of version 0", compileVersion0(keypair.publicKey, limit(1), call(programId))],
    ["of version 2", Buffer.from(version1(allowed, call(programId))).fill(130, 0, 1)],
    ["that is empty", new Uint8Array()],
    ["of version 1 with instructions of the compute budget program", version1(allowed, limit(1))],
    [
      "of version 1 that may load less than the chain allows",
      version1({ ...allowed, loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT - 1 }),
    ],
    [
      "of version 1 without a limit of loaded data",
      version1({ ...allowed, loadedAccountsDataSizeLimit: undefined }),
    ],
    ["of version 1 with a limit of no compute units", version1({ computeUnitLimit: 0 })],
    [
      "of version 1 with a priority fee above the cap",
      version1({ ...allowed, priorityFeeLamports: 1_001n }),
    ],
    [
      "of version 1 with a priority fee that no number can hold",
      version1({ ...allowed, priorityFeeLamports: 2n ** 64n - 1n }),
    ],
  ])("refuses a message %s", async (_, rejected) => {
    await expectRefused(feePayer.sign(rejected, spending()));
  });

  it("signs a message of version 1 with all that it may have", async () => {
    const signed = await feePayer.sign(
      version1({ ...allowed, priorityFeeLamports: 1_000n }, call(programId)),
      spending(),
    );
    expect(signed.fee).toBe(6_000n);
  });
});

describe("the fee payer and sweeps", () => {
  const creator = Keypair.generate().publicKey.toBase58();
  const mints = [Keypair.generate(), Keypair.generate()].map(({ publicKey }) =>
    publicKey.toBase58(),
  );
  const account = new DerivedCreator(creator);
  const payer = keypair.publicKey;
  const [curveSweep, poolSweep] = [
    toTransactionInstruction(
      launchpad.sweepCurve(payer.toBase58(), account, coinAddressesOf(mints[0]!)),
    ),
    toTransactionInstruction(
      launchpad.sweepPool(payer.toBase58(), account, coinAddressesOf(mints[1]!)),
    ),
  ];
  const allowed = {
    ...spending(),
    spendable: 5_000_000n,
    sweeps: [
      { address: creator, mint: mints[0]!, stage: "CURVE" as const },
      { address: creator, mint: mints[1]!, stage: "POOL" as const },
    ],
  };
  /** The fee payer's budget of an hour is 1,000,000 lamports. */
  const GUARD = 4_000_000n;
  const guard = (lamports = GUARD, toPubkey = payer) =>
    SystemProgram.transfer({ fromPubkey: payer, toPubkey, lamports });
  const collect = toTransactionInstruction(launchpad.collectCreatorFee(account));
  const withSweeps = (...instructions: TransactionInstruction[]) =>
    feePayer.sign(own(limit(1), ...instructions), allowed);
  const change = (
    { programId, keys, data }: TransactionInstruction,
    position: number,
    pubkey = Keypair.generate().publicKey,
  ) =>
    new TransactionInstruction({
      programId,
      data,
      keys: keys.with(position, { ...keys[position]!, pubkey }),
    });

  /** The sweep of the curve with another program, data or accounts. */
  const altered = (
    changes: Partial<Pick<TransactionInstruction, "programId" | "keys" | "data">>,
  ) => {
    const { programId, keys, data } = curveSweep;
    return new TransactionInstruction({ programId, keys, data, ...changes });
  };

  it("signs both, with a guard at the end", async () => {
    expect(feePayer.guardOf(allowed.spendable)).toBe(GUARD);
    expect((await withSweeps(curveSweep, poolSweep, collect, guard())).fee).toBe(5_000n);
  });

  it("requires a guard of some lamports even from a poor fee payer", () => {
    expect(feePayer.guardOf(10n)).toBe(1n);
  });

  it.each([
    ["curve", curveSweep],
    ["pool", poolSweep],
  ])("refuses a sweep of a %s with any other account", async (_, sweep) => {
    for (let position = 1; position < sweep.keys.length; position++)
      await expectRefused(withSweeps(change(sweep, position), collect, guard()));
  });

  it.each<[string, readonly TransactionInstruction[]]>([
    ["without a guard", [curveSweep, collect]],
    ["with a guard of less", [curveSweep, collect, guard(GUARD - 1n)]],
    ["with a guard that pays someone else", [curveSweep, collect, guard(GUARD, other)]],
    ["with a guard before the end", [curveSweep, guard(), collect]],
    ["with a second transfer", [curveSweep, guard(1n), collect, guard()]],
    ["that is done twice", [curveSweep, curveSweep, collect, guard()]],
    ["with other data", [altered({ data: Buffer.alloc(8, 1) }), collect, guard()]],
    [
      "with more data",
      [altered({ data: Buffer.concat([curveSweep.data, Buffer.alloc(1)]) }), guard()],
    ],
    [
      "with one account more",
      [altered({ keys: [...curveSweep.keys, curveSweep.keys[0]!] }), guard()],
    ],
    ["by another program", [altered({ programId: other }), guard()]],
    ["by the other of the two programs", [altered({ programId: poolSweep.programId }), guard()]],
    ["beside a collect for the fee payer itself", [curveSweep, change(collect, 0, payer), guard()]],
    [
      "of another coin",
      [
        toTransactionInstruction(
          launchpad.sweepCurve(payer.toBase58(), account, coinAddressesOf(mints[1]!)),
        ),
        collect,
        guard(),
      ],
    ],
  ])("refuses a sweep %s", async (_, instructions) => {
    await expectRefused(withSweeps(...instructions));
  });

  describe("of a coin whose fees are shared", () => {
    const coin = coinAddressesOf(mints[0]!);
    const { sharingConfig } = coin;
    const toConfig = [
      toTransactionInstruction(launchpad.sweepPool(payer.toBase58(), sharingConfig, coin)),
      toTransactionInstruction(launchpad.transferCreatorFeesToPump(sharingConfig)),
      toTransactionInstruction(launchpad.sweepCurve(payer.toBase58(), sharingConfig, coin)),
    ];
    const sign = (...instructions: TransactionInstruction[]) =>
      feePayer.sign(own(limit(1), ...instructions), {
        ...allowed,
        sweeps: [{ address: creator, mint: coin.mint, stage: "SHARED" as const }],
      });
    const distribute = (...shareholders: string[]) =>
      toTransactionInstruction(launchpad.distributeCreatorFees(coin, shareholders));

    it("are signed with the distribution", async () => {
      expect((await sign(...toConfig, distribute(creator), guard())).fee).toBe(5_000n);
    });

    it("are refused with any other account", async () => {
      for (const [i, sweep] of toConfig.entries()) {
        if (i === 1) continue;
        for (let position = 1; position < sweep.keys.length; position++)
          await expectRefused(sign(...toConfig.with(i, change(sweep, position)), guard()));
      }
    });

    it("are refused to the account's own vaults, and together with a distribution to the fee payer", async () => {
      await expectRefused(sign(curveSweep, distribute(creator), guard()));
      await expectRefused(sign(...toConfig, distribute(creator, payer.toBase58()), guard()));
    });
  });

  it("refuses a sweep that nobody asked for", async () => {
    const undeclared = own(limit(1), curveSweep, collect);
    await expectRefused(feePayer.sign(undeclared, spending()));
    const guarded = own(limit(1), curveSweep, collect, guard());
    await expectRefused(feePayer.sign(guarded, spending()));
  });

  it("keeps rent for transactions in flight, and counts it in the budget", async () => {
    const signWith = (rent: number, spendable: bigint) =>
      newFeePayer(0, 200_000).sign(own(limit(1), collect), {
        ...spending(),
        spendable,
        rent: toLamports(rent),
      });
    await expect(signWith(95_001, 1_000_000n)).rejects.toMatchObject({
      failure: { kind: "budget-spent" },
    });
    expect((await signWith(95_000, 1_000_000n)).fee).toBe(5_000n);
    const one = newFeePayer(0, 1_000_000);
    const sign = (spendable: bigint) =>
      one.sign(own(limit(1), collect), {
        ...spending(),
        spendable,
        rent: toLamports(50_000),
      });
    const first = await sign(0n);
    await expect(sign(54_999n)).rejects.toMatchObject({ failure: { kind: "fee-payer-short" } });
    first.costs[0]!.close(0n);
    expect(await sign(0n)).toBeDefined();
  });
});
