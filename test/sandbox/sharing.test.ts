import {
  ComputeBudgetProgram,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addCreatorFees } from "../../src/sandbox/chain/creator-fees.ts";
import { USDC_MINT } from "../../src/sandbox/chain/coins.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { coinFees } from "../support/coin-balances.ts";
import {
  AMM,
  ata,
  collectCreatorFee,
  creatorVaultOf,
  curveOf,
  distributeCreatorFees,
  PUMP,
  sharingConfigOf,
  sweepCurve,
  sweepPool,
  SYSTEM_PROGRAM,
  toInstruction,
  transferCreatorFeesToPump,
  vaultAuthorityOf,
  WSOL,
} from "../support/launchpad-instructions.ts";

const VAULT_RENT = 650_240n;
const TOKEN_ACCOUNT_RENT = 1_488_440n;
const TRANSACTION_FEE = 5_000n;
const STATUS_OFFSET = 10;

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

/** An address that exists. */
function newShareholder(): string {
  const address = newKey();
  sandbox.chain.setBalance(address, 1_000_000n);
  return address;
}

/**
 * A coin that new shareholders, or those at `addresses`, share in these parts. Its fees are in
 * these places.
 */
function newSharedCoin(
  parts: readonly number[],
  {
    addresses = parts.map(newShareholder),
    ...fees
  }: { addresses?: string[]; vault?: bigint; curve?: bigint; pool?: bigint } = {},
) {
  const mint = newKey();
  const config = sharingConfigOf(mint);
  const shareholders = parts.map((bps, i) => ({ address: addresses[i]!, bps }));
  sandbox.coins.launch({ mint, creator: newKey(), kind: "shared", shareholders, fees: fees.curve });
  if (fees.pool !== undefined) sandbox.coins.migrate(mint, { fees: fees.pool });
  const vault = creatorVaultOf(config);
  if (fees.vault !== undefined) sandbox.chain.setBalance(vault, VAULT_RENT + fees.vault);
  return { mint, config, vault, addresses, shareholders };
}

type Listed = ReturnType<typeof distributeCreatorFees>;

/**
 * Sends the instructions as one transaction. `paid` is what the fee payer loses besides the fee.
 */
async function send(...instructions: TransactionInstruction[]) {
  const { chain } = sandbox;
  chain.advanceSlots(1);
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    ...chain.latestBlockhash("confirmed"),
  }).add(ComputeBudgetProgram.setComputeUnitLimit({ units: 1_400_000 }), ...instructions);
  transaction.sign(payer);
  const before = balance(PAYER);
  const wire = transaction.serialize().toString("base64");
  const { result } = await rpc("sendTransaction", [
    wire,
    { encoding: "base64", skipPreflight: true },
  ]);
  const { err, unitsConsumed } = chain.landed(result)!;
  return { err, unitsConsumed, paid: before - balance(PAYER) - TRANSACTION_FEE };
}

async function rpc(method: string, params: unknown[]): Promise<any> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(sandbox.rpc.url, { method: "POST", body });
  return response.json();
}

const execute = (...listed: Listed[]) =>
  send(...listed.map((each) => toInstruction(each, each.accounts)));
const instructionError = (error: unknown) => ({ err: { InstructionError: [1, error] } });
const customError = (code: number) => instructionError({ Custom: code });
const success = { err: null, paid: 0n };

/** What a distribution pays to each of the addresses, and what the vault loses. */
async function distribute({ mint, vault, addresses }: ReturnType<typeof newSharedCoin>) {
  const held = () => [vault, ...addresses].map(balance);
  const before = held();
  expect(await execute(distributeCreatorFees(mint, addresses))).toMatchObject(success);
  const [vaultGain, ...gains] = held().map((lamports, i) => lamports - before[i]!);
  return { gains, lost: -vaultGain! };
}

describe("a distribution", () => {
  it("pays each shareholder its part, to the lamport, and leaves the rest in the vault", async () => {
    const coin = newSharedCoin([5_000, 3_333, 1_667], { vault: 1_000_000_007n });
    const { gains, lost } = await distribute(coin);
    expect(gains).toEqual([500_000_003n, 333_300_002n, 166_700_001n]);
    expect(lost).toBe(1_000_000_006n);
    expect(balance(coin.vault)).toBe(VAULT_RENT + 1n);
  });

  it.each([1, 2, 3, 5, 7, 10])("pays %i shareholders what the vault loses", async (count) => {
    const parts = Array.from({ length: count }, (_, i) =>
      i === 0 ? 10_000 - 900 * (count - 1) : 900,
    );
    const vault = 987_654_321n;
    const { gains, lost } = await distribute(newSharedCoin(parts, { vault }));
    expect(gains).toEqual(parts.map((bps) => (vault * BigInt(bps)) / 10_000n));
    expect(gains.reduce((sum, gain) => sum + gain)).toBe(lost);
    expect(vault - lost).toBeLessThan(BigInt(count));
  });

  it("pays any amount to addresses that exist", async () => {
    const coin = newSharedCoin([6_000, 4_000], { vault: 1n });
    expect(await distribute(coin)).toEqual({ gains: [0n, 0n], lost: 0n });
    sandbox.chain.transfer(coin.vault, 1n);
    expect(await distribute(coin)).toEqual({ gains: [1n, 0n], lost: 1n });
  });

  it("succeeds without effect if nothing waits, and if the vault does not exist", async () => {
    for (const coin of [newSharedCoin([10_000], { vault: 0n }), newSharedCoin([10_000])]) {
      expect(await distribute(coin)).toEqual({ gains: [0n], lost: 0n });
    }
  });

  it("creates a shareholder's account, unless its part is below the rent-exempt minimum", async () => {
    const { mint, vault, addresses } = newSharedCoin([9_900, 100], {
      vault: 65_023_900n,
      addresses: [newShareholder(), newKey()],
    });
    const before = [vault, ...addresses].map(balance);
    // All or nothing: the other shareholder is not paid either.
    expect(await execute(distributeCreatorFees(mint, addresses))).toMatchObject(success);
    expect([vault, ...addresses].map(balance)).toEqual(before);

    sandbox.chain.transfer(vault, 100n);
    expect(await execute(distributeCreatorFees(mint, addresses))).toMatchObject(success);
    expect(balance(addresses[1]!)).toBe(VAULT_RENT);
  });

  it("moves what trading pays into the vault, as before October 2026", async () => {
    const coin = newSharedCoin([10_000]);
    addCreatorFees(sandbox.chain, coin.config, 7_000_000n);
    expect(balance(coin.vault)).toBe(VAULT_RENT + 7_000_000n);
    expect(await distribute(coin)).toEqual({ gains: [7_000_000n], lost: 7_000_000n });
  });

  it("moves the fees of a curve after a sweep, whose payer creates the vault", async () => {
    const { mint, config, vault, addresses } = newSharedCoin([7_000, 3_000], {
      curve: 100_000_000n,
    });
    const before = addresses.map(balance);
    const outcome = await execute(
      sweepCurve(PAYER, mint, config),
      distributeCreatorFees(mint, addresses),
    );
    expect(outcome).toMatchObject({ err: null, paid: VAULT_RENT });
    expect(balance(vault)).toBe(VAULT_RENT);
    expect(addresses.map((address, i) => balance(address) - before[i]!)).toEqual([
      70_000_000n,
      30_000_000n,
    ]);
  });

  it("moves all fees of a migrated coin, though no vault exists, and the payer pays only for the AMM's", async () => {
    const coin = newSharedCoin([7_000, 3_000], { curve: 30_000_000n, pool: 70_650_240n });
    const { mint, config, vault, addresses } = coin;
    const before = addresses.map(balance);
    const outcome = await execute(
      sweepPool(PAYER, mint, config),
      transferCreatorFeesToPump(config),
      sweepCurve(PAYER, mint, config),
      distributeCreatorFees(mint, addresses),
    );
    expect(outcome).toMatchObject({ err: null, paid: TOKEN_ACCOUNT_RENT });
    // The vault keeps its minimum.
    expect(balance(vault)).toBe(VAULT_RENT);
    expect(addresses.map((address, i) => balance(address) - before[i]!)).toEqual([
      70_000_000n,
      30_000_000n,
    ]);
    expect(coinFees(sandbox.chain, mint)).toEqual({ curve: 0n, pool: 0n });
  });

  it("ignores fees that wait in a pool", async () => {
    const coin = newSharedCoin([10_000], { vault: 5_000_000n, pool: 9_000_000n });
    expect((await distribute(coin)).lost).toBe(5_000_000n);
    expect(coinFees(sandbox.chain, coin.mint).pool).toBe(9_000_000n);
  });

  it("pays the accounts of the seed that share a coin with a stranger to the service", async () => {
    const [band, graduate] = ["band", "graduate"].map((handle) =>
      sandbox.accounts.find((account) => account.handle === handle)!,
    );
    const { mint, sharingConfig } = band!.coins[0]!;
    const data = sandbox.chain.account(sharingConfig.address)!.data;
    const stranger = new PublicKey(data.subarray(80 + 2 * 34, 80 + 2 * 34 + 32)).toBase58();
    expect(PublicKey.isOnCurve(stranger)).toBe(true);
    const addresses = [band!.address, graduate!.address, stranger];
    const before = addresses.map(balance);
    const outcome = await execute(
      sweepCurve(PAYER, mint, sharingConfig.address),
      distributeCreatorFees(mint, addresses),
    );
    expect(outcome).toMatchObject({ err: null, paid: VAULT_RENT });
    const gains = addresses.map((address, i) => balance(address) - before[i]!);
    expect(gains).toEqual([600_000_000n, 360_000_000n, 240_000_000n]);
  });
});

describe("the AMM's transfer for a sharing config", () => {
  it("creates the missing creator vault, unless it moves less than that vault's rent", async () => {
    const { mint, config, vault } = newSharedCoin([10_000], { pool: VAULT_RENT - 1n });
    const transfer = [sweepPool(PAYER, mint, config), transferCreatorFeesToPump(config)] as const;
    expect(await execute(...transfer)).toMatchObject({ err: null, paid: TOKEN_ACCOUNT_RENT });
    expect(balance(vault)).toBe(0n);

    sandbox.coins.addFees(mint, 1n);
    expect(await execute(...transfer)).toMatchObject(success);
    const ammVault = Buffer.from(sandbox.chain.account(ata(vaultAuthorityOf(config), WSOL))!.data);
    expect(ammVault.readBigUInt64LE(64)).toBe(0n);
    expect(balance(vault)).toBe(VAULT_RENT);
  });

  it("fails without the AMM's vault", async () => {
    const { config } = newSharedCoin([10_000], { pool: 0n });
    expect(await execute(transferCreatorFeesToPump(config))).toMatchObject(customError(3012));
  });
});

describe("a distribution fails", () => {
  /** Expects a failure, after which the vault and the shareholders hold what they held. */
  async function expectFailure(
    coin: ReturnType<typeof newSharedCoin>,
    instruction: TransactionInstruction,
    error: object,
  ) {
    const held = () => [coin.vault, ...coin.addresses].map(balance);
    const before = held();
    expect(await send(instruction)).toMatchObject({ ...error, paid: 0n });
    expect(held()).toEqual(before);
  }
  const instructionOf = (
    { mint, addresses }: ReturnType<typeof newSharedCoin>,
    given = addresses,
  ) => {
    const listed = distributeCreatorFees(mint, given);
    return toInstruction(listed, listed.accounts);
  };
  const newFullCoin = (parts = [6_000, 4_000]) => newSharedCoin(parts, { vault: 50_000_000n });

  it("while the config is paused, and works again afterwards", async () => {
    const coin = newFullCoin();
    sandbox.coins.setSharing(coin.mint, { isPaused: true });
    await expectFailure(coin, instructionOf(coin), customError(6051));
    sandbox.coins.setSharing(coin.mint, { isPaused: false });
    expect((await distribute(coin)).lost).toBe(50_000_000n);
  });

  it("for more than 1.8 million SOL", async () => {
    const coin = newSharedCoin([9_999, 1], { vault: 2n ** 64n / 10_000n + 1n });
    await expectFailure(coin, instructionOf(coin), customError(6024));
  });

  it("if a shareholder has no part, or the coin trades in another currency", async () => {
    const coin = newSharedCoin([10_000, 0], { vault: 50_000_000n });
    await expectFailure(coin, instructionOf(coin), customError(6055));
    const inUsdc = newFullCoin();
    const curve = sandbox.chain.account(curveOf(inUsdc.mint))!;
    const data = Buffer.from(curve.data);
    data.set(new PublicKey(USDC_MINT).toBytes(), 83);
    sandbox.chain.setAccount(curveOf(inUsdc.mint), { ...curve, data });
    await expectFailure(inUsdc, instructionOf(inUsdc), customError(6063));
  });

  it("if a shareholder is executable", async () => {
    const coin = newSharedCoin([6_000, 4_000], {
      vault: 50_000_000n,
      addresses: [newShareholder(), AMM],
    });
    await expectFailure(coin, instructionOf(coin), customError(6052));
  });

  it("if the curve names another creator than the config", async () => {
    const coin = newFullCoin();
    const creator = newKey();
    sandbox.coins.launch({ mint: coin.mint, creator });
    await expectFailure(coin, instructionOf(coin), instructionError("InvalidSeeds"));
    const right = distributeCreatorFees(coin.mint, coin.addresses);
    const accounts = right.accounts.with(3, [creatorVaultOf(creator), "w"]);
    await expectFailure(coin, toInstruction(right, accounts), customError(6053));
  });

  it("with other shareholders than the config's, or in another order", async () => {
    const coin = newFullCoin([5_000, 3_000, 2_000]);
    const [first, second, third] = coin.addresses as [string, string, string];
    const other = newShareholder();
    for (const given of [[], [first, second]])
      await expectFailure(coin, instructionOf(coin, given), customError(6027));
    for (const given of [
      [first, third, second],
      [first, second, other],
    ])
      await expectFailure(coin, instructionOf(coin, given), customError(6054));

    sandbox.coins.setSharing(coin.mint, { shareholders: [{ address: other, bps: 10_000 }] });
    await expectFailure(coin, instructionOf(coin), customError(6054));
    const changed = { ...coin, addresses: [other] };
    expect(await distribute(changed)).toEqual({ gains: [50_000_000n], lost: 50_000_000n });
  });

  it("while fees wait on the curve, even after the coin has migrated", async () => {
    for (const pool of [undefined, 0n]) {
      const fees = { vault: 50_000_000n, curve: 1n, ...(pool !== undefined && { pool }) };
      const coin = newSharedCoin([10_000], fees);
      await expectFailure(coin, instructionOf(coin), customError(6095));
      expect(await execute(sweepCurve(PAYER, coin.mint, coin.config))).toMatchObject(success);
      expect((await distribute(coin)).lost).toBe(50_000_001n);
    }
  });

  it.each(
    [
      ["mint", "InvalidSeeds"],
      ["curve", "InvalidSeeds"],
      ["sharing config", "InvalidSeeds"],
      ["creator vault", "InvalidSeeds"],
      ["System program", "IncorrectProgramId"],
      ["event authority", "InvalidSeeds"],
      ["program", "IncorrectProgramId"],
    ].map(([name, error], position) => [name, error, position] as const),
  )("with another %s", async (_, error, position) => {
    const [coin, sibling] = [newFullCoin(), newFullCoin()];
    const right = distributeCreatorFees(coin.mint, coin.addresses);
    const like = distributeCreatorFees(sibling.mint, sibling.addresses).accounts[position]!;
    const wrong = position < 4 ? like : ([newKey(), like[1]] as const);
    await expectFailure(
      coin,
      toInstruction(right, right.accounts.with(position, wrong)),
      instructionError(error),
    );
  });

  it("with read-only or missing accounts, and other data", async () => {
    const coin = newFullCoin();
    const right = distributeCreatorFees(coin.mint, coin.addresses);
    for (const [position, [address, flags]] of right.accounts.entries()) {
      if (flags !== "w") continue;
      const accounts = right.accounts.with(position, [address, ""]);
      await expectFailure(
        coin,
        toInstruction(right, accounts),
        instructionError("InvalidArgument"),
      );
    }
    const short = toInstruction(right, right.accounts.slice(0, 6));
    await expectFailure(coin, short, instructionError("NotEnoughAccountKeys"));
    const long = toInstruction({ ...right, data: `${right.data}00` }, right.accounts);
    await expectFailure(coin, long, instructionError("InvalidInstructionData"));
  });

  it("if the config or the curve is not what the programs created", async () => {
    const coin = newFullCoin();
    const { chain } = sandbox;
    const right = instructionOf(coin);
    const withBytes = (data: Uint8Array, at: number, bytes: Uint8Array) => {
      const changed = Buffer.from(data);
      changed.set(bytes, at);
      return changed;
    };
    for (const address of [coin.config, curveOf(coin.mint)]) {
      const account = chain.account(address)!;
      chain.setAccount(address, {
        ...account,
        owner: address === coin.config ? PUMP : SYSTEM_PROGRAM,
      });
      await expectFailure(coin, right, instructionError("InvalidAccountOwner"));
      chain.setAccount(address, { ...account, data: withBytes(account.data, 0, Buffer.alloc(8)) });
      await expectFailure(coin, right, instructionError("InvalidAccountData"));
      chain.setAccount(address, { ...account, data: account.data.subarray(0, 80) });
      await expectFailure(coin, right, instructionError("InvalidAccountData"));
      chain.setAccount(address, account);
    }
    const config = chain.account(coin.config)!;
    const otherMint = new PublicKey(newKey()).toBytes();
    chain.setAccount(coin.config, { ...config, data: withBytes(config.data, 11, otherMint) });
    await expectFailure(coin, right, instructionError("InvalidAccountData"));
    chain.setAccount(coin.config, {
      ...config,
      data: withBytes(config.data, STATUS_OFFSET, Buffer.of(2)),
    });
    await expectFailure(coin, right, customError(6051));
    chain.setAccount(coin.config, config);
    expect((await distribute(coin)).lost).toBe(50_000_000n);
  });
});

it("a plain collect fails for a sharing config", async () => {
  const { config, vault } = newSharedCoin([10_000], { vault: 50_000_000n });
  expect(await execute(collectCreatorFee(config))).toMatchObject(customError(6050));
  expect(balance(vault)).toBe(VAULT_RENT + 50_000_000n);
});

it("a sharing config has the platform's layout", () => {
  const coin = newSharedCoin([6_000, 4_000]);
  const { data, owner, lamports } = sandbox.chain.account(coin.config)!;
  expect([data.length, owner, lamports]).toEqual([
    1024,
    "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ",
    sandbox.chain.rentExemptMinimum(1024),
  ]);
  const bytes = Buffer.from(data);
  expect(bytes.subarray(0, 8).toString("hex")).toBe("d84a0900388c5d4b");
  expect(bytes[STATUS_OFFSET]).toBe(1);
  expect(new PublicKey(bytes.subarray(11, 43)).toBase58()).toBe(coin.mint);
  expect(bytes.readUInt32LE(76)).toBe(2);
  const entries = [80, 114].map((at) => ({
    address: new PublicKey(bytes.subarray(at, at + 32)).toBase58(),
    bps: bytes.readUInt16LE(at + 32),
  }));
  expect(entries).toEqual(coin.shareholders);
  expect(bytes.subarray(148).every((byte) => byte === 0)).toBe(true);
});
