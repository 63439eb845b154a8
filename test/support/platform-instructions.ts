import {
  ComputeBudgetProgram,
  PublicKey,
  Transaction,
  type Keypair,
  type TransactionInstruction,
} from "@solana/web3.js";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import {
  AMM,
  ata,
  creatorVaultOf,
  curveOf,
  FEES,
  pda,
  poolOf,
  PUMP,
  sharingConfigOf,
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  toInstruction,
  vaultAuthorityOf,
  WSOL,
  type ListedAccount,
} from "./launchpad-instructions.ts";

// The instructions of the launch platform's users, which only its own programs have. Accounts and
// arguments follow the IDLs of the crate pump-rust-client 0.5.0.

const TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
const ASSOCIATED_TOKEN_PROGRAM = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
const MAYHEM = "MAyhSmzXzV1pTf7LsNkrNwkWKTo4ougAJ1PPg47MD4e";
const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";

const key = (address: string) => new PublicKey(address).toBytes();
const eventAuthorityOf = (program: string) => pda(program, "__event_authority");
/** The associated token account of a coin: coins are mints of Token-2022. */
const ata22 = (owner: string, mint: string) =>
  pda(ASSOCIATED_TOKEN_PROGRAM, key(owner), key(TOKEN_2022), key(mint));
const poolAuthorityOf = (mint: string) => pda(PUMP, "pool-authority", key(mint));
const feeConfigOf = (program: string) => pda(FEES, "fee_config", key(program));
const mayhem = (...seeds: (string | Uint8Array)[]) => pda(MAYHEM, ...seeds);

const u64 = (amount: bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(amount);
  return bytes;
};
const u32 = (count: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(count);
  return bytes;
};
const text = (content: string) => Buffer.concat([u32(content.length), Buffer.from(content)]);

function toPlatformInstruction(
  program: string,
  discriminator: string,
  args: readonly Uint8Array[],
  accounts: readonly ListedAccount[],
): TransactionInstruction {
  const data = discriminator + Buffer.concat(args).toString("hex");
  return toInstruction({ program, data }, accounts);
}

/** The programs refuse a fee config without room for more tiers. */
const FEE_CONFIG_ROOM = 8_192;

/** Receives the platform's fees, and may do what only the platform may. */
export const PLATFORM = PublicKey.unique().toBase58();

/** Fills the platform's configuration, of which sweeps and collects need nothing. */
export function configurePlatform(chain: Chain): void {
  const write = (
    address: string,
    fields: Readonly<Record<number, Uint8Array | bigint | number>>,
  ) => {
    const account = chain.account(address)!;
    const data = Buffer.from(account.data);
    for (const [offset, value] of Object.entries(fields))
      data.set(
        typeof value === "bigint" ? u64(value) : typeof value === "number" ? [value] : value,
        Number(offset),
      );
    chain.setAccount(address, { ...account, data });
  };
  const platform = key(PLATFORM);
  const platforms = (count: number) => Buffer.concat(Array<Uint8Array>(count).fill(platform));
  write(pda(PUMP, "global"), {
    8: 1, // initialized
    9: platform, // authority
    41: platform, // fee recipient
    73: 1_073_000_000_000_000n, // initial virtual token reserves
    81: 30_000_000_000n, // initial virtual SOL reserves
    89: 793_100_000_000_000n, // initial real token reserves
    97: 1_000_000_000_000_000n, // total supply of a coin
    105: 95n, // fee in basis points
    113: platform, // withdraw authority
    145: 1, // migrations are enabled
    146: 15_000_001n, // fee of a migration
    154: 5n, // creator fee in basis points
    162: platforms(7), // fee recipients
    450: 1, // create_v2 is enabled
    483: platform, // reserved fee recipient
    516: platforms(7), // reserved fee recipients
    741: platforms(8), // buyback fee recipients
    997: 5_000n, // buyback in basis points of the fee
    1_005: 4_292_000_000n, // initial virtual quote reserves
  });
  write(pda(AMM, "global_config"), {
    8: platform, // admin
    40: 20n, // fee of liquidity providers in basis points
    48: 5n, // fee of the protocol
    57: platforms(8), // protocol fee recipients
    313: 5n, // creator fee
    385: platform, // reserved fee recipient
    418: platforms(7), // reserved fee recipients
    643: platforms(8), // buyback fee recipients
    899: 5_000n, // buyback in basis points of the fee
  });
  const [LP_BPS, PROTOCOL_BPS, CREATOR_BPS] = [20n, 95n, 30n];
  const fees = Buffer.concat([u64(LP_BPS), u64(PROTOCOL_BPS), u64(CREATOR_BPS)]);
  // One tier, from a market capitalization of 0.
  const tiers = Buffer.concat([u32(1), Buffer.alloc(16), fees]);
  for (const program of [PUMP, AMM]) {
    const [address, bump] = PublicKey.findProgramAddressSync(
      [Buffer.from("fee_config"), key(program)],
      new PublicKey(FEES),
    );
    setFeesAccount(chain, address, "8f3492bbdb7b4c9b", [
      Uint8Array.of(bump),
      platform,
      fees,
      tiers,
      tiers,
      fees,
      Buffer.alloc(FEE_CONFIG_ROOM),
    ]);
  }
  const [global, bump] = PublicKey.findProgramAddressSync(
    [Buffer.from("fee-program-global")],
    new PublicKey(FEES),
  );
  setFeesAccount(chain, global, "a2a5f5311d2537f2", [
    Uint8Array.of(bump),
    platform,
    Uint8Array.of(0),
    platform,
    u64(0n),
    Buffer.alloc(256),
  ]);
  chain.setBalance(PLATFORM, 1_000_000_000n);
}

function setFeesAccount(
  chain: Chain,
  address: PublicKey,
  discriminator: string,
  fields: readonly Uint8Array[],
): void {
  const data = Buffer.concat([Buffer.from(discriminator, "hex"), ...fields]);
  const lamports = chain.rentExemptMinimum(data.length);
  chain.setAccount(address.toBase58(), { lamports, owner: FEES, data });
}

/** `createV2`; the mint and the user sign. */
export const createCoin = (user: string, mint: string, creator: string) =>
  toPlatformInstruction(
    PUMP,
    "d6904cec5f8b31b4",
    [
      text("Coin"),
      text("COIN"),
      text("https://coin.example"),
      key(creator),
      Uint8Array.of(0, 0), // no mayhem mode, no cashback
      u64(0n), // the default creator fee
      Uint8Array.of(0), // no holder rewards
    ],
    [
      [mint, "sw"],
      [pda(PUMP, "mint-authority"), ""],
      [curveOf(mint), "w"],
      [ata22(curveOf(mint), mint), "w"],
      [pda(PUMP, "global"), ""],
      [user, "sw"],
      [SYSTEM_PROGRAM, ""],
      [TOKEN_2022, ""],
      [ASSOCIATED_TOKEN_PROGRAM, ""],
      [MAYHEM, "w"],
      [mayhem("global-params"), ""],
      [mayhem("sol-vault"), "w"],
      [mayhem("mayhem-state", key(mint)), "w"],
      [ata22(mayhem("sol-vault"), mint), "w"],
      [eventAuthorityOf(PUMP), ""],
      [PUMP, ""],
    ],
  );

/** Creates the user's account of a coin, if it is missing. */
export const createCoinAccount = (user: string, mint: string) =>
  toPlatformInstruction(
    ASSOCIATED_TOKEN_PROGRAM,
    "01",
    [],
    [
      [user, "sw"],
      [ata22(user, mint), "w"],
      [user, ""],
      [mint, ""],
      [SYSTEM_PROGRAM, ""],
      [TOKEN_2022, ""],
    ],
  );

/** `buyV3` of `amount` of a coin on its curve, for at most `maxCost` lamports. */
export const buyOnCurve = (user: string, mint: string, amount: bigint, maxCost: bigint) =>
  toPlatformInstruction(
    PUMP,
    "07051dc4f5176550",
    [u64(amount), u64(maxCost), Uint8Array.of(1)], // buys what is left if it is less
    [
      [pda(PUMP, "global"), ""],
      [mint, ""],
      [WSOL, ""],
      [TOKEN_2022, ""],
      [TOKEN_PROGRAM, ""],
      [curveOf(mint), "w"],
      [ata22(curveOf(mint), mint), "w"],
      [ata(curveOf(mint), WSOL), "w"],
      [user, "sw"],
      [ata22(user, mint), "w"],
      [ata(user, WSOL), "w"],
      [pda(PUMP, "user_volume_accumulator", key(user)), "w"],
      [feeConfigOf(PUMP), ""],
      [PLATFORM, "w"],
      [SYSTEM_PROGRAM, ""],
      [eventAuthorityOf(PUMP), ""],
      [PUMP, ""],
    ],
  );

/** `migrateV2`, which anyone may call once the curve is complete. */
export const migrate = (user: string, mint: string) => {
  const [curve, pool, authority] = [curveOf(mint), poolOf(mint), poolAuthorityOf(mint)];
  const lpMint = pda(AMM, "pool_lp_mint", key(pool));
  return toPlatformInstruction(
    PUMP,
    "bbcb121fceedfe29",
    [],
    [
      [pda(PUMP, "global"), ""],
      [PLATFORM, "w"],
      [mint, ""],
      [WSOL, ""],
      [curve, "w"],
      [ata22(curve, mint), "w"],
      [ata(curve, WSOL), "w"],
      [user, "sw"],
      [SYSTEM_PROGRAM, ""],
      [AMM, ""],
      [pool, "w"],
      [authority, "w"],
      [ata22(authority, mint), "w"],
      [ata(authority, WSOL), "w"],
      [pda(AMM, "global_config"), ""],
      [lpMint, "w"],
      [ata22(authority, lpMint), "w"],
      [ata22(pool, mint), "w"],
      [ata(pool, WSOL), "w"],
      [TOKEN_2022, ""],
      [TOKEN_PROGRAM, ""],
      [TOKEN_2022, ""],
      [ASSOCIATED_TOKEN_PROGRAM, ""],
      [eventAuthorityOf(AMM), ""],
      [RENT_SYSVAR, ""],
      [eventAuthorityOf(PUMP), ""],
      [PUMP, ""],
    ],
  );
};

/** `buyV2` or `sellV2` of the AMM: an amount of the coin, and the worst price in lamports. */
export const tradeInPool = (
  side: "buy" | "sell",
  user: string,
  mint: string,
  amount: bigint,
  limit: bigint,
) =>
  toPlatformInstruction(
    AMM,
    side === "buy" ? "b817ee6167c5d33d" : "5df6823ce7e940b2",
    [u64(amount), u64(limit)],
    [
      [poolOf(mint), "w"],
      [user, "sw"],
      [pda(AMM, "global_config"), ""],
      [mint, ""],
      [WSOL, ""],
      [ata22(user, mint), "w"],
      [ata(user, WSOL), "w"],
      [ata22(poolOf(mint), mint), "w"],
      [ata(poolOf(mint), WSOL), "w"],
      [TOKEN_2022, ""],
      [TOKEN_PROGRAM, ""],
      [SYSTEM_PROGRAM, ""],
      [pda(AMM, "user_volume_accumulator", key(user)), "w"],
      [feeConfigOf(AMM), ""],
      [ata(PLATFORM, WSOL), "w"],
      [eventAuthorityOf(AMM), ""],
      [AMM, ""],
    ],
  );

/** `createFeeSharingConfig`, with the creator as the only shareholder; the creator signs. */
export const createSharingConfig = (creator: string, mint: string, hasPool: boolean) =>
  toPlatformInstruction(
    FEES,
    "c34e564c6f34fbd5",
    [],
    [
      [eventAuthorityOf(FEES), ""],
      [FEES, ""],
      [creator, "sw"],
      [pda(PUMP, "global"), ""],
      [mint, ""],
      [sharingConfigOf(mint), "w"],
      [SYSTEM_PROGRAM, ""],
      [curveOf(mint), "w"],
      [PUMP, ""],
      [eventAuthorityOf(PUMP), ""],
      // The program's own address stands for an account that is not given.
      [hasPool ? poolOf(mint) : FEES, hasPool ? "w" : ""],
      [hasPool ? AMM : FEES, ""],
      [hasPool ? eventAuthorityOf(AMM) : FEES, ""],
    ],
  );

/** `updateFeeShares`, which pays `earlier` shareholders what waits for them. */
export const updateShares = (
  authority: string,
  mint: string,
  earlier: readonly string[],
  shareholders: readonly { address: string; bps: number }[],
  hasPool: boolean,
) => {
  const config = sharingConfigOf(mint);
  return toPlatformInstruction(
    FEES,
    "bd0d8863bba4ed23",
    [
      u32(shareholders.length),
      ...shareholders.map(({ address, bps }) =>
        Buffer.concat([key(address), Uint8Array.of(bps & 0xff, bps >> 8)]),
      ),
    ],
    [
      [eventAuthorityOf(FEES), ""],
      [FEES, ""],
      [authority, "s"],
      [pda(PUMP, "global"), ""],
      [mint, ""],
      [config, "w"],
      [curveOf(mint), ""],
      [creatorVaultOf(config), "w"],
      [SYSTEM_PROGRAM, ""],
      [PUMP, ""],
      [eventAuthorityOf(PUMP), ""],
      [AMM, ""],
      [eventAuthorityOf(AMM), ""],
      [WSOL, ""],
      [TOKEN_PROGRAM, ""],
      [ASSOCIATED_TOKEN_PROGRAM, ""],
      [vaultAuthorityOf(config), "w"],
      [ata(vaultAuthorityOf(config), WSOL), "w"],
      ...earlier.map((address): ListedAccount => [address, "w"]),
      ...(hasPool ? [[poolOf(mint), ""] as const] : []),
    ],
  );
};

/** The address that receives fees for an account of a social network. */
export const socialFeesOf = (userId: string, platform: number) =>
  pda(FEES, "social-fee-pda", Buffer.from(userId), Uint8Array.of(platform));

/** `createSocialFeePda`. */
export const createSocialFees = (payer: string, userId: string, platform: number) =>
  toPlatformInstruction(
    FEES,
    "90e03bd34ef8cadc",
    [text(userId), Uint8Array.of(platform)],
    [
      [payer, "sw"],
      [socialFeesOf(userId, platform), "w"],
      [SYSTEM_PROGRAM, ""],
      [pda(FEES, "fee-program-global"), ""],
      [eventAuthorityOf(FEES), ""],
      [FEES, ""],
    ],
  );

/** Sends a transaction that the signers sign, the first of them as the payer. Throws if it fails. */
export function sendSigned(
  chain: Chain,
  signers: readonly Keypair[],
  ...instructions: readonly TransactionInstruction[]
): void {
  chain.advanceSlots(1);
  const transaction = new Transaction({
    feePayer: signers[0]!.publicKey,
    ...chain.latestBlockhash("processed"),
  }).add(ComputeBudgetProgram.setComputeUnitLimit({ units: 1_400_000 }), ...instructions);
  transaction.sign(...signers);
  const wire = decodeTransaction(transaction.serialize());
  const error = chain.send(wire);
  if (error)
    throw new Error(
      [JSON.stringify(error), ...(chain.landed(wire.signature)?.logs ?? [])].join("\n"),
    );
}
