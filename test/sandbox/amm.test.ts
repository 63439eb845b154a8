import {
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  Transaction,
  TransactionInstruction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addAmmFees } from "../support/add-amm-fees.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";

type Account = Sandbox["accounts"][number];

const WRAPPED_SOL_MINT = "So11111111111111111111111111111111111111112";
const TOKEN_PROGRAM = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const SYSTEM_PROGRAM = "11111111111111111111111111111111";
const ASSOCIATED_TOKEN_PROGRAM = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
const LAUNCHPAD = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const AMM = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";

const TRANSFER_CREATOR_FEES_TO_PUMP = "8b348655e4e56cf1";
const COLLECT_CREATOR_FEE = "1416567bc61cdb84";

const TOKEN_ACCOUNT_RENT = 1_488_440n;

let sandbox: Sandbox;
const payer = Keypair.generate();
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  sandbox.chain.setBalance(payer.publicKey.toBase58(), BigInt(LAMPORTS_PER_SOL));
});
afterAll(() => sandbox.close());

async function rpc(method: string, params: unknown[]): Promise<any> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  const response = await fetch(sandbox.rpc.url, { method: "POST", headers, body });
  return response.json();
}

const account = (handle: string) =>
  sandbox.accounts.find((candidate) => candidate.handle === handle)!;

function eventAuthority(program: string): string {
  const seeds = [Buffer.from("__event_authority")];
  return PublicKey.findProgramAddressSync(seeds, new PublicKey(program))[0].toBase58();
}

/** `writable` holds the indexes of the writable accounts. */
function instruction(program: string, data: string, accounts: string[], writable: number[]) {
  return new TransactionInstruction({
    programId: new PublicKey(program),
    keys: accounts.map((address, i) => ({
      pubkey: new PublicKey(address),
      isSigner: false,
      isWritable: writable.includes(i),
    })),
    data: Buffer.from(data, "hex"),
  });
}

const transferAccounts = (of: Account) => [
  WRAPPED_SOL_MINT,
  TOKEN_PROGRAM,
  SYSTEM_PROGRAM,
  ASSOCIATED_TOKEN_PROGRAM,
  of.address,
  of.ammVaultAuthority,
  of.ammVault,
  of.creatorVault,
  eventAuthority(AMM),
  AMM,
];

const transferFees = (of: Account) =>
  instruction(AMM, TRANSFER_CREATOR_FEES_TO_PUMP, transferAccounts(of), [5, 6, 7]);

const collect = (of: Account) =>
  instruction(
    LAUNCHPAD,
    COLLECT_CREATOR_FEE,
    [of.address, of.creatorVault, SYSTEM_PROGRAM, eventAuthority(LAUNCHPAD), LAUNCHPAD],
    [0, 1],
  );

/** Sends the instructions as one transaction. */
async function execute(...instructions: TransactionInstruction[]) {
  sandbox.chain.advanceSlots(1);
  const latest = sandbox.chain.latestBlockhash("confirmed");
  const transaction = new Transaction({ feePayer: payer.publicKey, ...latest }).add(
    ...instructions,
  );
  transaction.sign(payer);
  const wire = transaction.serialize().toString("base64");
  const { result } = await rpc("sendTransaction", [
    wire,
    { encoding: "base64", skipPreflight: true },
  ]);
  return sandbox.chain.landed(result)!;
}

const instructionError = (error: unknown) => ({ InstructionError: [0, error] });

const balances = ({ address, creatorVault, ammVaultAuthority, ammVault }: Account) => ({
  address: sandbox.chain.balance(address),
  creatorVault: sandbox.chain.balance(creatorVault),
  ammVaultAuthority: sandbox.chain.balance(ammVaultAuthority),
  ammVault: sandbox.chain.balance(ammVault),
});

/** The token amount of the vault, in lamports. */
const tokenAmount = ({ ammVault }: Account) =>
  Buffer.from(sandbox.chain.account(ammVault)!.data).readBigUInt64LE(64);

describe("the sandbox's AMM", () => {
  it("holds part of graduate's fees, and one transaction moves all fees to the address", async () => {
    const graduate = account("graduate");
    const before = balances(graduate);
    expect(before.creatorVault).toBe(sandbox.chain.rentExemptMinimum(0) + 1_000_000_000n);
    expect(before.ammVault).toBe(TOKEN_ACCOUNT_RENT + 500_000_000n);
    expect(tokenAmount(graduate)).toBe(500_000_000n);
    const seeded = sandbox.chain.account(graduate.ammVault)!;

    const landed = await execute(transferFees(graduate), collect(graduate));
    expect(landed.err).toBeNull();
    expect(balances(graduate)).toEqual({
      address: before.address + 1_500_000_000n,
      creatorVault: sandbox.chain.rentExemptMinimum(0),
      ammVaultAuthority: 0n,
      ammVault: TOKEN_ACCOUNT_RENT,
    });
    // Apart from the amount, the seeded account equals the account that the Token program created.
    const empty = Buffer.from(seeded.data);
    empty.writeBigUInt64LE(0n, 64);
    expect(Buffer.from(sandbox.chain.account(graduate.ammVault)!.data)).toEqual(empty);
    expect(sandbox.chain.account(graduate.ammVault)!.owner).toBe(seeded.owner);

    const invokedPrograms = landed.innerInstructions[0]!.filter(
      ({ stackHeight }) => stackHeight === 2,
    ).map(({ programIdIndex }) => landed.message.staticAccounts[programIdIndex]);
    expect(invokedPrograms).toEqual([TOKEN_PROGRAM, ASSOCIATED_TOKEN_PROGRAM, SYSTEM_PROGRAM]);
    expect(landed.bytes.length).toBeLessThan(1232);
    expect(landed.unitsConsumed).toBeLessThan(100_000);
  });

  it("receives new fees, and moves any amount of them", async () => {
    const artist = account("artist110");
    expect(sandbox.chain.account(artist.ammVault)).toBeNull();
    const signature = addAmmFees(sandbox.chain, artist.address, 650_240n);
    expect(sandbox.chain.landed(signature)?.err).toBeNull();
    expect(tokenAmount(artist)).toBe(650_240n);

    const before = balances(artist);
    expect((await execute(transferFees(artist))).err).toBeNull();
    expect(balances(artist)).toEqual({
      ...before,
      creatorVault: before.creatorVault + 650_240n,
      ammVault: TOKEN_ACCOUNT_RENT,
    });
    expect(tokenAmount(artist)).toBe(0n);
    expect((await execute(transferFees(artist))).err).toBeNull();
  });

  it("moves nothing while the vault has fewer lamports than the rent of a token account", async () => {
    const artist = account("artist115");
    addAmmFees(sandbox.chain, artist.address, 1_000_000n);
    const vault = sandbox.chain.account(artist.ammVault)!;
    sandbox.chain.setAccount(artist.ammVault, { ...vault, lamports: TOKEN_ACCOUNT_RENT - 1n });
    const before = balances(artist);
    expect((await execute(transferFees(artist))).err).toBeNull();
    expect(balances(artist)).toEqual(before);
    expect(tokenAmount(artist)).toBe(1_000_000n);

    sandbox.chain.transfer(artist.ammVault, 1n);
    expect((await execute(transferFees(artist))).err).toBeNull();
  });

  it("also moves unwrapped lamports of the vault, and all lamports of its authority", async () => {
    const artist = account("artist120");
    addAmmFees(sandbox.chain, artist.address, 2_000_000n);
    sandbox.chain.transfer(artist.ammVault, 7n);
    sandbox.chain.transfer(artist.ammVaultAuthority, 1_000_000n);
    const before = balances(artist);
    expect((await execute(transferFees(artist))).err).toBeNull();
    expect(balances(artist)).toEqual({
      ...before,
      creatorVault: before.creatorVault + 3_000_007n,
      ammVaultAuthority: 0n,
      ammVault: TOKEN_ACCOUNT_RENT,
    });
  });

  it.each([
    ["mint", 0, "InvalidArgument"],
    ["Token program", 1, "IncorrectProgramId"],
    ["System program", 2, "IncorrectProgramId"],
    ["Associated Token program", 3, "IncorrectProgramId"],
    ["creator", 4, "InvalidSeeds"],
    ["vault authority", 5, "InvalidSeeds"],
    ["vault", 6, "InvalidSeeds"],
    ["creator vault", 7, "InvalidSeeds"],
    ["event authority", 8, "InvalidSeeds"],
    ["program", 9, "IncorrectProgramId"],
  ])("rejects a wrong %s", async (_, position, error) => {
    addAmmFees(sandbox.chain, account("artist130").address, 2_000_000n);
    const accounts = transferAccounts(account("artist130"));
    const others = [
      ...transferAccounts(account("graduate")).slice(0, 8),
      eventAuthority(LAUNCHPAD),
      LAUNCHPAD,
    ];
    const wrongAccount =
      others[position] === accounts[position] ? payer.publicKey.toBase58() : others[position]!;
    const wrong = instruction(
      AMM,
      TRANSFER_CREATOR_FEES_TO_PUMP,
      accounts.with(position, wrongAccount),
      [5, 6, 7],
    );
    const before = balances(account("artist130"));
    expect((await execute(wrong)).err).toEqual(instructionError(error));
    expect(balances(account("artist130"))).toEqual(before);
  });

  it("rejects a missing vault, read-only accounts, and unknown instructions", async () => {
    const artist = account("artist140");
    expect((await execute(transferFees(artist))).err).toEqual(instructionError({ Custom: 3012 }));

    addAmmFees(sandbox.chain, artist.address, 2_000_000n);
    const accounts = transferAccounts(artist);
    for (const [given, data, writable, error] of [
      [accounts, TRANSFER_CREATOR_FEES_TO_PUMP, [6, 7], "InvalidArgument"],
      [accounts, TRANSFER_CREATOR_FEES_TO_PUMP, [5, 7], "InvalidArgument"],
      [accounts, TRANSFER_CREATOR_FEES_TO_PUMP, [5, 6], "InvalidArgument"],
      [
        accounts.with(4, artist.ammVault),
        TRANSFER_CREATOR_FEES_TO_PUMP,
        [5, 6, 7],
        "InvalidArgument",
      ],
      [accounts.slice(0, 9), TRANSFER_CREATOR_FEES_TO_PUMP, [5, 6, 7], "NotEnoughAccountKeys"],
      [accounts, COLLECT_CREATOR_FEE, [5, 6, 7], "InvalidInstructionData"],
      [accounts, TRANSFER_CREATOR_FEES_TO_PUMP + "00", [5, 6, 7], "InvalidInstructionData"],
    ] as const) {
      const wrong = instruction(AMM, data, [...given], [...writable]);
      expect((await execute(wrong)).err).toEqual(instructionError(error));
    }
    expect((await execute(transferFees(artist))).err).toBeNull();
    expect(sandbox.chain.balance(artist.creatorVault)).toBe(2_000_000n);
  });
});
