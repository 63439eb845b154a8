import {
  ComputeBudgetProgram,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import {
  ata,
  collectCreatorFee,
  creatorVaultOf,
  curveOf,
  type ListedAccount,
  pda,
  poolOf,
  PUMP,
  sweepCurve,
  sweepPool,
  SYSTEM_PROGRAM,
  toInstruction,
  transferCreatorFeesToPump,
  vaultAuthorityOf,
  WSOL,
} from "../support/launchpad-instructions.ts";

const USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const TRANSACTION_FEE = 5_000n;
const VAULT_RENT = 650_240n;
const TOKEN_ACCOUNT_RENT = 1_488_440n;
/** What the sandbox's curves and pools hold besides fees. */
const RESERVES = 2_000_000_000n;
const MAX_TRANSACTION_BYTES = 1232;

let sandbox: Sandbox;
const payer = Keypair.generate();
const PAYER = payer.publicKey.toBase58();
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  sandbox.chain.setBalance(PAYER, BigInt(LAMPORTS_PER_SOL));
});
afterAll(() => sandbox.close());

const newKey = () => PublicKey.unique().toBase58();
const balance = (address: string) => sandbox.chain.balance(address);
const data = (address: string) => Buffer.from(sandbox.chain.account(address)!.data);
const curveFee = (mint: string) => data(curveOf(mint)).readBigUInt64LE(125);
const poolFees = (mint: string) => data(poolOf(mint)).readBigUInt64LE(279);
/** The amount of a token account, or 0 if it is missing. */
const tokens = (address: string) =>
  sandbox.chain.account(address) ? data(address).readBigUInt64LE(64) : 0n;

/**
 * A creator whose address exists, with the rent-exempt vaults that earlier fees leave behind, or
 * without.
 */
function newCreator(options: { hasVaults: boolean }) {
  const address = newKey();
  const vault = creatorVaultOf(address);
  const ammVault = ata(vaultAuthorityOf(address), WSOL);
  sandbox.chain.setBalance(address, 1_000_000n);
  if (options.hasVaults) {
    sandbox.chain.setBalance(vault, VAULT_RENT);
    const { chain, coins } = sandbox;
    const mint = newKey();
    coins.launch({ mint, creator: address });
    coins.migrate(mint);
    chain.setAccount(ammVault, chain.account(ata(poolOf(mint), WSOL))!);
    const empty = data(ammVault);
    empty.set(new PublicKey(vaultAuthorityOf(address)).toBytes(), 32);
    empty.writeBigUInt64LE(0n, 64);
    chain.setAccount(ammVault, {
      ...chain.account(ammVault)!,
      lamports: TOKEN_ACCOUNT_RENT,
      data: empty,
    });
  }
  return { address, vault, ammVault };
}

/** A coin with fees on its curve, or in its pool once it has migrated. */
function newCoin(creator: string, fees: { curve?: bigint; pool?: bigint }): string {
  const mint = newKey();
  sandbox.coins.launch({ mint, creator, fees: fees.curve ?? 0n });
  if (fees.pool !== undefined) sandbox.coins.migrate(mint, { fees: fees.pool });
  return mint;
}

type Listed = ReturnType<typeof sweepCurve>;

/** Signs a transaction like the collector's: with a limit and a price of compute units. */
function sign(
  instructions: readonly TransactionInstruction[],
  signers: readonly Keypair[] = [],
): Buffer {
  sandbox.chain.advanceSlots(1);
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    ...sandbox.chain.latestBlockhash("confirmed"),
  }).add(
    ComputeBudgetProgram.setComputeUnitLimit({ units: 1_400_000 }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 0 }),
    ...instructions,
  );
  transaction.sign(payer, ...signers);
  return transaction.serialize();
}

async function rpc(method: string, params: unknown[]): Promise<any> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(sandbox.rpc.url, { method: "POST", body });
  return response.json();
}

async function send(
  instructions: readonly TransactionInstruction[],
  signers: readonly Keypair[] = [],
) {
  const before = balance(PAYER);
  const wire = sign(instructions, signers).toString("base64");
  const { result } = await rpc("sendTransaction", [
    wire,
    { encoding: "base64", skipPreflight: true },
  ]);
  const { err, unitsConsumed } = sandbox.chain.landed(result)!;
  const feeLamports = TRANSACTION_FEE * BigInt(1 + signers.length);
  return { err, unitsConsumed, paid: before - balance(PAYER) - feeLamports };
}

/**
 * Sends the listed instructions as one transaction. `paid` is what the fee payer loses besides the
 * fee.
 */
const execute = (...listed: Listed[]) =>
  send(listed.map((instruction) => toInstruction(instruction, instruction.accounts)));

const instructionError = (error: unknown) => ({ InstructionError: [2, error] });
const success = { err: null, paid: 0n };

describe("a sweep of a curve", () => {
  it("moves the waiting fee to the creator vault, and nothing else", async () => {
    const { address, vault } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 5_000_000_000n });
    const before = balance(curveOf(mint));
    const expected = data(curveOf(mint));
    expected.writeBigUInt64LE(0n, 125);
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject(success);
    expect(balance(vault)).toBe(VAULT_RENT + 5_000_000_000n);
    expect(balance(curveOf(mint))).toBe(before - 5_000_000_000n);
    expect(balance(curveOf(mint))).toBe(sandbox.chain.rentExemptMinimum(166) + RESERVES);
    expect(data(curveOf(mint))).toEqual(expected);
  });

  it("succeeds without effect when nothing waits, such as after another sweep", async () => {
    const { address, vault } = newCreator({ hasVaults: false });
    const mint = newCoin(address, {});
    const before = sandbox.chain.account(curveOf(mint));
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject(success);
    expect(sandbox.chain.account(curveOf(mint))).toEqual(before);
    expect(balance(vault)).toBe(0n);
  });

  it("works after the coin has migrated", async () => {
    const { address, vault } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 70_000_000n, pool: 0n });
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject(success);
    expect(balance(vault)).toBe(VAULT_RENT + 70_000_000n);
    expect(balance(curveOf(mint))).toBe(sandbox.chain.rentExemptMinimum(166));
  });

  it.each([
    ["missing", 0n, VAULT_RENT],
    ["below", 640_000n, VAULT_RENT],
    ["above", 700_000n, 0n],
  ])(
    "makes the payer pay a whole minimum to a vault that is below it: %s",
    async (_, held, paid) => {
      const { address, vault } = newCreator({ hasVaults: false });
      if (held > 0n) sandbox.chain.setBalance(vault, held);
      const mint = newCoin(address, { curve: 20_000n });
      expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({ err: null, paid });
      expect(balance(vault)).toBe(held + paid + 20_000n);
    },
  );

  it.each([
    [151, 76_200n, 9_000_000n],
    [141, 127_000n, 9_000_000n],
    [140, 132_080n, 0n],
    [133, 167_640n, 0n],
    [125, 208_280n, 0n],
    [49, 594_360n, 0n],
    [256, 0n, 9_000_000n],
  ])(
    "makes the payer grow a curve of %i bytes for %i lamports",
    async (curveBytes, paid, moved) => {
      const { address, vault } = newCreator({ hasVaults: true });
      const mint = newKey();
      sandbox.coins.launch({ mint, creator: address, fees: moved, curveBytes });
      const before = balance(curveOf(mint));
      // A curve of 49 bytes names no creator.
      const named = curveBytes < 81 ? SYSTEM_PROGRAM : address;
      expect(await execute(sweepCurve(PAYER, mint, named))).toMatchObject({ err: null, paid });
      expect(data(curveOf(mint)).length).toBe(Math.max(166, curveBytes));
      expect(curveFee(mint)).toBe(0n);
      expect(balance(vault)).toBe(VAULT_RENT + moved);
      expect(balance(curveOf(mint))).toBe(before + paid - moved);
    },
  );

  it("charges nothing for growth that a curve's spare lamports cover, and leaves its reserves alone", async () => {
    const { address } = newCreator({ hasVaults: true });
    const mint = newKey();
    sandbox.coins.launch({ mint, creator: address, fees: 9_000_000n, curveBytes: 151 });
    sandbox.chain.transfer(curveOf(mint), 76_100n);
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({
      err: null,
      paid: 100n,
    });
    expect(balance(curveOf(mint))).toBe(sandbox.chain.rentExemptMinimum(166) + RESERVES);
  });

  it("moves another currency to the vault's token account, which the payer creates", async () => {
    const { address, vault } = newCreator({ hasVaults: false });
    const mint = newKey();
    sandbox.coins.launch({ mint, creator: address, quoteMint: USDC, fees: 3_000_000n });
    const sweep = sweepCurve(PAYER, mint, address, USDC);
    expect(await execute(sweep)).toMatchObject({ err: null, paid: TOKEN_ACCOUNT_RENT });
    expect(tokens(ata(vault, USDC))).toBe(3_000_000n);
    expect(tokens(ata(curveOf(mint), USDC))).toBe(RESERVES);
    expect(curveFee(mint)).toBe(0n);
    expect(await execute(sweep)).toMatchObject(success);
    // As if the coin traded in SOL.
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({
      err: instructionError("InvalidArgument"),
    });
  });

  it("makes the payer top up a curve by one minimum at most, and refuses a fee that it still does not hold", async () => {
    const { address } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 5_000_000n });
    const { rentExemptMinimum, account, setAccount } = sandbox.chain;
    const rent = rentExemptMinimum(166);
    setAccount(curveOf(mint), { ...account(curveOf(mint))!, lamports: 3_000_000n });
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({
      err: instructionError("ArithmeticOverflow"),
    });
    setAccount(curveOf(mint), { ...account(curveOf(mint))!, lamports: 4_000_000n });
    expect((await execute(sweepCurve(PAYER, mint, address))).err).toHaveProperty(
      "InsufficientFundsForRent",
    );
    setAccount(curveOf(mint), { ...account(curveOf(mint))!, lamports: rent + 4_000_000n });
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({
      err: null,
      paid: rent,
    });
  });
});

describe("a sweep of a pool", () => {
  it("moves the waiting fees to the AMM's vault, and nothing else", async () => {
    const { address, ammVault } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { pool: 2_500_000_000n });
    const expected = data(poolOf(mint));
    expected.writeBigUInt64LE(0n, 279);
    expected.writeBigUInt64LE(2_500_000_000n, 245);
    expect(await execute(sweepPool(PAYER, mint, address))).toMatchObject(success);
    expect(tokens(ammVault)).toBe(2_500_000_000n);
    expect(tokens(ata(poolOf(mint), WSOL))).toBe(RESERVES);
    expect(data(poolOf(mint))).toEqual(expected);
  });

  it("makes the payer create the AMM's vault if that is missing, but not when nothing waits", async () => {
    const { address, ammVault } = newCreator({ hasVaults: false });
    const mint = newCoin(address, { pool: 0n });
    const before = sandbox.chain.account(poolOf(mint));
    expect(await execute(sweepPool(PAYER, mint, address))).toMatchObject(success);
    expect(sandbox.chain.account(poolOf(mint))).toEqual(before);
    expect(sandbox.chain.account(ammVault)).toBeNull();

    sandbox.coins.addFees(mint, 30_000n);
    expect(await execute(sweepPool(PAYER, mint, address))).toMatchObject({
      err: null,
      paid: TOKEN_ACCOUNT_RENT,
    });
    expect(tokens(ammVault)).toBe(30_000n);
  });

  it.each([
    [271, 81_280n],
    [243, 223_520n],
    [300, 0n],
  ])("makes the payer grow a pool of %i bytes for %i lamports", async (poolBytes, paid) => {
    const { address } = newCreator({ hasVaults: true });
    const mint = newCoin(address, {});
    sandbox.coins.migrate(mint, { poolBytes });
    expect(await execute(sweepPool(PAYER, mint, address))).toMatchObject({ err: null, paid });
    expect(data(poolOf(mint)).length).toBe(Math.max(287, poolBytes));
    expect(poolFees(mint)).toBe(0n);
    sandbox.coins.addFees(mint, 30_000n);
    expect(await execute(sweepPool(PAYER, mint, address))).toMatchObject(success);
  });
});

describe("sweeps refuse", () => {
  const CURVE_ACCOUNTS = [
    ["payer", "MissingRequiredSignature"],
    ["global config", "InvalidSeeds"],
    ["mint", { Custom: 3012 }],
    ["quote mint", "InvalidArgument"],
    ["token program", "IncorrectProgramId"],
    ["associated token program", "IncorrectProgramId"],
    ["system program", "IncorrectProgramId"],
    ["curve", "InvalidSeeds"],
    ["token account of the curve", "InvalidSeeds"],
    ["creator vault", "InvalidSeeds"],
    ["token account of the creator vault", "InvalidSeeds"],
    ["event authority", "InvalidSeeds"],
    ["program", "IncorrectProgramId"],
  ] as const;
  const POOL_ACCOUNTS = [
    ["payer", "MissingRequiredSignature"],
    ["global config", "InvalidSeeds"],
    ["pool", "InvalidArgument"],
    ["quote mint", "InvalidArgument"],
    ["token program", "IncorrectProgramId"],
    ["token account of the pool", "InvalidArgument"],
    ["vault authority", "InvalidSeeds"],
    ["AMM's vault", "InvalidSeeds"],
    ["system program", "IncorrectProgramId"],
    ["associated token program", "IncorrectProgramId"],
    ["event authority", "InvalidSeeds"],
    ["program", "IncorrectProgramId"],
  ] as const;

  /**
   * The instruction with another account at one position; curves and pools are replaced by their
   * like.
   */
  async function executeWrong(right: Listed, position: number, sibling: string) {
    const wrong: ListedAccount = [
      right.accounts[position]![0] === sibling ? newKey() : sibling,
      position === 0 ? "w" : right.accounts[position]![1],
    ];
    return send([toInstruction(right, right.accounts.with(position, wrong))]);
  }

  it.each(CURVE_ACCOUNTS.map(([name, error], position) => [name, error, position] as const))(
    "a wrong %s of a curve",
    async (name, error, position) => {
      const { address, vault } = newCreator({ hasVaults: true });
      const mint = newCoin(address, { curve: 10_000_000n });
      const sibling =
        name === "curve" ? curveOf(newCoin(address, { curve: 10_000_000n })) : newKey();
      const right = sweepCurve(PAYER, mint, address);
      expect(await executeWrong(right, position, sibling)).toEqual({
        err: instructionError(error),
        unitsConsumed: expect.any(Number),
        paid: 0n,
      });
      expect(curveFee(mint)).toBe(10_000_000n);
      expect(balance(vault)).toBe(VAULT_RENT);
    },
  );

  it.each(POOL_ACCOUNTS.map(([name, error], position) => [name, error, position] as const))(
    "a wrong %s of a pool",
    async (name, error, position) => {
      const { address, ammVault } = newCreator({ hasVaults: true });
      const mint = newCoin(address, { pool: 10_000_000n });
      const sibling = name === "pool" ? poolOf(newCoin(address, { pool: 10_000_000n })) : newKey();
      const right = sweepPool(PAYER, mint, address);
      expect(await executeWrong(right, position, sibling)).toMatchObject({
        err: instructionError(error),
        paid: 0n,
      });
      expect(poolFees(mint)).toBe(10_000_000n);
      expect(tokens(ammVault)).toBe(0n);
    },
  );

  it("accounts that are not a curve or a pool of the program", async () => {
    const { address } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 10_000_000n, pool: 10_000_000n });
    const { account, setAccount } = sandbox.chain;
    for (const [place, sweep] of [
      [curveOf(mint), sweepCurve(PAYER, mint, address)],
      [poolOf(mint), sweepPool(PAYER, mint, address)],
    ] as const) {
      const right = account(place)!;
      const other = Buffer.from(right.data);
      other[0] = 0;
      setAccount(place, { ...right, data: other });
      expect(await execute(sweep)).toMatchObject({ err: instructionError("InvalidAccountData") });
      setAccount(place, { ...right, owner: SYSTEM_PROGRAM });
      expect(await execute(sweep)).toMatchObject({ err: instructionError("InvalidAccountOwner") });
      setAccount(place, right);
      expect(await execute(sweep)).toMatchObject(success);
    }
  });

  it("a creator vault that is not the System program's", async () => {
    const { address, vault } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 10_000_000n });
    sandbox.chain.setAccount(vault, { ...sandbox.chain.account(vault)!, owner: PUMP });
    expect(await execute(sweepCurve(PAYER, mint, address))).toMatchObject({
      err: instructionError("InvalidAccountOwner"),
    });
  });

  it("a payer that is read-only, but not one other than the fee payer, which then pays the rent", async () => {
    const other = Keypair.generate();
    const otherPayer = other.publicKey.toBase58();
    sandbox.chain.setBalance(otherPayer, 100_000_000n);
    const { address } = newCreator({ hasVaults: false });
    const mint = newCoin(address, { curve: 10_000_000n, pool: 10_000_000n });
    const sweeps = [sweepCurve(otherPayer, mint, address), sweepPool(otherPayer, mint, address)];
    for (const sweep of sweeps) {
      const readOnly = toInstruction(sweep, sweep.accounts.with(0, [otherPayer, "s"]));
      expect((await send([readOnly], [other])).err).toEqual(instructionError("InvalidArgument"));
      const right = toInstruction(sweep, sweep.accounts);
      expect(await send([right], [other])).toMatchObject(success);
    }
    expect(balance(otherPayer)).toBe(100_000_000n - VAULT_RENT - TOKEN_ACCOUNT_RENT);
  });

  it("the vault of another creator than the curve's or the pool's", async () => {
    const { address } = newCreator({ hasVaults: true });
    const other = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 10_000_000n, pool: 10_000_000n });
    for (const sweep of [
      sweepCurve(PAYER, mint, other.address),
      sweepPool(PAYER, mint, other.address),
    ]) {
      expect(await execute(sweep)).toMatchObject({ err: instructionError("InvalidSeeds") });
    }
  });

  it("read-only accounts, missing accounts, and other data", async () => {
    const { address } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { curve: 10_000_000n, pool: 10_000_000n });
    for (const [sweep, error] of [
      [sweepCurve(PAYER, mint, address), "NotEnoughAccountKeys"],
      [sweepPool(PAYER, mint, address), "NotEnoughAccountKeys"],
    ] as const) {
      for (const [position, [key, flags]] of sweep.accounts.entries()) {
        // The fee payer is always writable.
        if (flags !== "w") continue;
        const accounts = sweep.accounts.with(position, [key, ""]);
        const { err } = await send([toInstruction(sweep, accounts)]);
        expect(err, `account ${position}`).toEqual(instructionError("InvalidArgument"));
      }
      const short = await send([toInstruction(sweep, sweep.accounts.slice(0, -1))]);
      expect(short.err).toEqual(instructionError(error));
      for (const data of [
        "20f6bf3408c949ba00",
        "1416567bc61cdb84",
        "8b348655e4e56cf1",
        "0830be07b644b7e5",
      ]) {
        const { err } = await send([toInstruction({ ...sweep, data }, sweep.accounts)]);
        expect(err).toEqual(instructionError("InvalidInstructionData"));
      }
      expect(await execute(sweep)).toMatchObject(success);
    }
  });
});

describe("a collect with sweeps", () => {
  it("moves all fees at once, though no vault exists, and the payer pays only for the AMM's vault", async () => {
    const { address, vault, ammVault } = newCreator({ hasVaults: false });
    const mint = newCoin(address, { curve: 300_000_000n, pool: 700_000_000n });
    const before = balance(address);
    const outcome = await execute(
      sweepPool(PAYER, mint, address),
      transferCreatorFeesToPump(address),
      sweepCurve(PAYER, mint, address),
      collectCreatorFee(address),
    );
    expect(outcome).toMatchObject({ err: null, paid: TOKEN_ACCOUNT_RENT });
    // The vault keeps its minimum.
    expect(balance(address)).toBe(before + 1_000_000_000n - VAULT_RENT);
    expect(balance(vault)).toBe(VAULT_RENT);
    expect(tokens(ammVault)).toBe(0n);
    expect([curveFee(mint), poolFees(mint)]).toEqual([0n, 0n]);
  });

  it("collects a curve's fee whole into a missing vault, whose rent the payer pays", async () => {
    const { address, vault } = newCreator({ hasVaults: false });
    const mint = newCoin(address, { curve: 300_000_000n });
    const before = balance(address);
    const outcome = await execute(sweepCurve(PAYER, mint, address), collectCreatorFee(address));
    expect(outcome).toMatchObject({ err: null, paid: VAULT_RENT });
    expect(balance(address)).toBe(before + 300_000_000n);
    expect(balance(vault)).toBe(VAULT_RENT);
  });

  it("collects pool fees however little they are", async () => {
    const { address, ammVault } = newCreator({ hasVaults: true });
    const mint = newCoin(address, { pool: 1n });
    const before = balance(address);
    const outcome = await execute(
      sweepPool(PAYER, mint, address),
      transferCreatorFeesToPump(address),
      collectCreatorFee(address),
    );
    expect(outcome).toMatchObject(success);
    expect(tokens(ammVault)).toBe(0n);
    expect(balance(address)).toBe(before + 1n);
  });

  /**
   * A legacy transaction with sweeps of this many new coins, and the instructions after each kind
   * of sweep.
   */
  function collectOf(coins: { curves: number; pools: number }) {
    const { address } = newCreator({ hasVaults: true });
    const mints = (count: number, fees: object) =>
      Array.from({ length: count }, () => newCoin(address, fees));
    const both = mints(Math.min(coins.curves, coins.pools), {
      curve: 10_000_000n,
      pool: 10_000_000n,
    });
    const curves = [...both, ...mints(coins.curves - both.length, { curve: 10_000_000n })];
    const pools = [...both, ...mints(coins.pools - both.length, { pool: 10_000_000n })];
    return {
      address,
      instructions: [
        ...pools.map((mint) => sweepPool(PAYER, mint, address)),
        ...(pools.length > 0 ? [transferCreatorFeesToPump(address)] : []),
        ...curves.map((mint) => sweepCurve(PAYER, mint, address)),
        collectCreatorFee(address),
      ],
    };
  }
  const sizeOf = (instructions: Listed[]) => {
    try {
      return sign(instructions.map((listed) => toInstruction(listed, listed.accounts))).length;
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each([[{ curves: 5, pools: 0 }], [{ curves: 0, pools: 6 }], [{ curves: 2, pools: 2 }]])(
    "fits in a legacy transaction with %j, and not with one more",
    async ({ curves, pools }) => {
      const { address, instructions } = collectOf({ curves, pools });
      expect(sizeOf(instructions)).toBeLessThanOrEqual(MAX_TRANSACTION_BYTES);
      const before = balance(address);
      expect(await execute(...instructions)).toMatchObject(success);
      expect(balance(address)).toBe(before + BigInt(curves + pools) * 10_000_000n);

      const more = collectOf({ curves: curves && curves + 1, pools: pools && pools + 1 });
      expect(sizeOf(more.instructions)).toContain("too large");
    },
  );
});

describe("the sandbox's coins", () => {
  const account = (handle: string) =>
    sandbox.accounts.find((candidate) => candidate.handle === handle)!;

  it("receive fees on the curve, or in the pool once they have migrated", () => {
    const { address } = newCreator({ hasVaults: false });
    const mint = newCoin(address, {});
    const before = balance(curveOf(mint));
    const add = (lamports: bigint) => sandbox.coins.addFees(mint, lamports);
    expect(sandbox.chain.landed(add(7_000_000n))?.err).toBeNull();
    add(1n);
    expect(curveFee(mint)).toBe(7_000_001n);
    expect(balance(curveOf(mint))).toBe(before + 7_000_001n);

    sandbox.coins.migrate(mint);
    expect(sandbox.chain.landed(add(9_000_000n))?.err).toBeNull();
    expect([curveFee(mint), poolFees(mint)]).toEqual([7_000_001n, 9_000_000n]);
    expect(tokens(ata(poolOf(mint), WSOL))).toBe(RESERVES + 9_000_000n);
  });

  it("receive fees in another currency", () => {
    const { address } = newCreator({ hasVaults: false });
    const mint = newKey();
    sandbox.coins.launch({ mint, creator: address, quoteMint: USDC });
    expect(sandbox.chain.landed(sandbox.coins.addFees(mint, 4_000_000n))?.err).toBeNull();
    expect(curveFee(mint)).toBe(4_000_000n);
    expect(tokens(ata(curveOf(mint), USDC))).toBe(RESERVES + 4_000_000n);
  });

  it("grow when fees arrive that an old account cannot record", () => {
    const { address } = newCreator({ hasVaults: false });
    const mint = newKey();
    sandbox.coins.launch({ mint, creator: address, curveBytes: 125 });
    sandbox.coins.addFees(mint, 5_000n);
    expect(data(curveOf(mint)).length).toBe(166);
    expect(balance(curveOf(mint))).toBe(sandbox.chain.rentExemptMinimum(166) + RESERVES + 5_000n);
    sandbox.coins.launch({ mint, creator: address, curveBytes: 151 });
    sandbox.coins.addFees(mint, 5_000n);
    expect([data(curveOf(mint)).length, curveFee(mint)]).toEqual([151, 5_000n]);
  });

  it("refuse fees of an unknown coin, and of a cashback coin", () => {
    const cashback = account("variety").coins.at(-1)!;
    for (const mint of [newKey(), cashback.mint])
      expect(() => sandbox.coins.addFees(mint, 1n)).toThrow(mint);
  });

  it("include the documented ones, which any sweep accepts", async () => {
    const waiting = (handle: string) =>
      account(handle).coins.map(({ mint }) => [
        curveFee(mint),
        sandbox.chain.account(poolOf(mint)) ? poolFees(mint) : null,
      ]);
    expect(waiting("launcher")).toEqual([
      [5_000_000_000n, null],
      [0n, 2_500_000_000n],
      [300_000_000n, 700_000_000n],
    ]);
    expect(waiting("prolific")).toHaveLength(10);
    expect(waiting("variety")).toEqual([
      [450_000_000n, null],
      [120_500_000n, null],
      [600_000_000n, 400_000_000n],
      [700_000_000n, null],
      [0n, null],
    ]);

    const creators = account("variety").coins.map(({ mint, curve }) => {
      const named = new PublicKey(data(curve).subarray(49, 81)).toBase58();
      return { mint, named };
    });
    const { address } = account("variety");
    const [own, usdc, shared, rewards, cashback] = creators as [
      (typeof creators)[0],
      (typeof creators)[0],
      (typeof creators)[0],
      (typeof creators)[0],
      (typeof creators)[0],
    ];
    expect([own.named, usdc.named, cashback.named]).toEqual([address, address, address]);
    expect(shared.named).toBe(
      pda(
        "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ",
        "sharing-config",
        new PublicKey(shared.mint).toBytes(),
      ),
    );
    expect(rewards.named).toBe(pda(PUMP, "holder-rewards", new PublicKey(rewards.mint).toBytes()));
    for (const { mint, named } of creators) {
      const quoteMint = mint === usdc.mint ? USDC : WSOL;
      expect((await execute(sweepCurve(PAYER, mint, named, quoteMint))).err).toBeNull();
      expect(curveFee(mint)).toBe(0n);
    }
  });
});
