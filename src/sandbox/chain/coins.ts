import { PublicKey } from "@solana/web3.js";
import { deriveAddress, findAddress, toKeyBytes } from "../../chain/primitives/derive-address.ts";
import { toLamports } from "../../chain/primitives/lamports.ts";
import { coinAddressesOf, poolSeedsOf } from "../../chain/launchpad/coin-addresses.ts";
import { decodeFeeAccount, PLACES } from "../../chain/launchpad/fee-accounts.ts";
import type { FeeAccount, Stage } from "../../chain/launchpad/fee-accounts.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../../chain/launchpad/program-ids.ts";
import { ALL_BPS } from "../../chain/launchpad/sharing-config.ts";
import type { Shareholder, SharingConfig } from "../../chain/launchpad/sharing-config.ts";
import { TOKEN_ACCOUNT_BYTES, tokenAccountOf } from "../../chain/launchpad/token-accounts.ts";
import type { Chain } from "./chain.ts";
import { setSharingConfig, STRANGER } from "./sharing.ts";
import {
  depositTokens,
  MINT_BYTES,
  toMintAccount,
  toTokenAccount,
  WRAPPED_SOL,
} from "./token-accounts.ts";

/** A coin to launch. */
export interface NewCoin {
  /** In base58, like `creator`. */
  readonly mint: string;
  readonly creator: string;
  /**
   * Who gets the fees instead of `creator`: the shareholders of a sharing config, the coin's
   * holders, or its traders. For the first two kinds, the curve names an address of the launch
   * platform as the creator.
   */
  readonly kind?: "shared" | "holderRewards" | "cashback" | undefined;
  /** The shareholders, for the kind `shared`. By default {@link STRANGER} gets all fees. */
  readonly shareholders?: readonly Shareholder[] | undefined;
  /** The mint of the currency in which the coin trades: {@link USDC_MINT}, or SOL if absent. */
  readonly quoteMint?: string | undefined;
  /** The fees on the curve, in the currency's smallest unit. */
  readonly fees?: bigint | undefined;
  /**
   * The size of the curve account's data. By default that of the newest layout; older layouts are
   * shorter.
   */
  readonly curveBytes?: number | undefined;
}

export type Coins = ReturnType<typeof createCoins>;

/** A currency other than SOL. The sandbox's faucet creates its tokens. */
export const USDC_MINT = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
/** Of USDC and of every coin. */
export const MINT_DECIMALS = 6;

/** Curves and pools hold this amount besides fees. So tests notice a sweep that takes too much. */
const RESERVES = 2_000_000_000n;

/** Offsets of fields that only the sandbox's programs read. Source: see PLACES. */
const CURVE_REAL_QUOTE_RESERVES = 32;
const CURVE_COMPLETE = 48;
const POOL_BUMP = 8;
const POOL_CREATOR = 11;
const POOL_BASE_MINT = 43;
const POOL_QUOTE_TOKENS = 171;

/** Creates the mint of the currency other than SOL. */
export function createUsdc(chain: Chain): void {
  createMint(chain, USDC_MINT);
}

/** Creates a mint whose tokens only the faucet can create. */
function createMint(chain: Chain, mint: string): void {
  const reserve = chain.rentExemptMinimum(MINT_BYTES);
  chain.setAccount(mint, toMintAccount(new PublicKey(chain.faucet), MINT_DECIMALS, reserve));
}

/**
 * Coins of the launch platform on the sandbox's chain. All methods but `addFees` work without a
 * transaction. Keeps no state besides the chain's accounts.
 */
export function createCoins(chain: Chain) {
  function read(stage: Stage, mint: string) {
    const account = chain.account(coinAddressesOf(mint)[PLACES[stage].account]);
    return decodeFeeAccount(
      stage,
      account
        ? { ...account, data: Buffer.from(account.data), lamports: toLamports(account.lamports) }
        : undefined,
      { lamportsPerByteYear: Number(chain.rentExemptMinimum(0)) / 128, exemptionThreshold: 1 },
    );
  }

  function setTokens(owner: string, mint: PublicKey, amount: bigint): void {
    const key = new PublicKey(owner);
    const reserve = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
    chain.setAccount(
      tokenAccountOf(owner, mint.toBase58()),
      toTokenAccount(mint, key, amount, reserve),
    );
  }

  function creatorFor({ kind, mint, creator }: NewCoin): string {
    switch (kind) {
      case "shared":
        return coinAddressesOf(mint).sharingConfig.address;
      case "holderRewards":
        return deriveAddress(["holder-rewards", toKeyBytes(mint)], LAUNCHPAD_PROGRAM_ID);
      case "cashback":
      case undefined:
        return creator;
    }
  }

  /** Adds to the fees that a curve or pool records in its data. The caller transfers the funds. */
  function recordFees(stage: Stage, address: string, amount: bigint): void {
    const { creatorFee, bytes } = PLACES[stage].layout;
    const account = chain.account(address)!;
    const isTooShort = account.data.length < creatorFee + 8;
    const data = resize(account.data, isTooShort ? bytes : account.data.length);
    data.writeBigUInt64LE(data.readBigUInt64LE(creatorFee) + amount, creatorFee);
    const growth =
      chain.rentExemptMinimum(data.length) - chain.rentExemptMinimum(account.data.length);
    chain.setAccount(address, { ...account, lamports: account.lamports + growth, data });
  }

  return {
    addressesOf: coinAddressesOf,

    /** Creates a coin that trades on its bonding curve. */
    launch(coin: NewCoin): void {
      const { mint, quoteMint, fees = 0n, kind, curveBytes = PLACES.CURVE.layout.bytes } = coin;
      const { curve } = coinAddressesOf(mint);
      const data = toFeeAccountData("CURVE", curveBytes, {
        creator: creatorFor(coin),
        quoteMint: quoteMint ?? PublicKey.default.toBase58(),
        waiting: fees,
        isCashback: kind === "cashback",
        isHolderReward: kind === "holderRewards",
      });
      data.writeBigUInt64LE(RESERVES, CURVE_REAL_QUOTE_RESERVES);
      if (quoteMint) setTokens(curve, new PublicKey(quoteMint), RESERVES + fees);
      createMint(chain, mint);
      const lamports = chain.rentExemptMinimum(curveBytes) + (quoteMint ? 0n : RESERVES + fees);
      chain.setAccount(curve, { lamports, owner: LAUNCHPAD_PROGRAM_ID, data });
      if (kind === "shared") {
        const { shareholders = [{ address: STRANGER, bps: ALL_BPS }] } = coin;
        setSharingConfig(chain, coinAddressesOf(mint), { shareholders, isPaused: false });
      }
    },

    /** Changes the sharing config of a coin: its shareholders, or whether it is paused. */
    setSharing(mint: string, change: Partial<SharingConfig>): void {
      setSharingConfig(chain, coinAddressesOf(mint), change);
    },

    /** Moves a coin from its curve to a pool. The fees on the curve stay there. */
    migrate(
      mint: string,
      {
        fees = 0n,
        poolBytes = PLACES.POOL.layout.bytes,
      }: { fees?: bigint; poolBytes?: number } = {},
    ): void {
      const { curve } = coinAddressesOf(mint);
      const curveAccount = chain.account(curve)!;
      const curveData = Buffer.from(curveAccount.data);
      curveData.writeBigUInt64LE(0n, CURVE_REAL_QUOTE_RESERVES);
      curveData.writeUInt8(1, CURVE_COMPLETE);
      const account = read("CURVE", mint)!;
      const quoteMint = new PublicKey(account.quoteMint);
      const movedLamports = quoteMint.equals(WRAPPED_SOL) ? RESERVES : 0n;
      chain.setAccount(curve, {
        ...curveAccount,
        lamports: curveAccount.lamports - movedLamports,
        data: curveData,
      });

      const data = toFeeAccountData("POOL", poolBytes, { ...account, waiting: fees });
      const seeds = poolSeedsOf(mint, account.quoteMint);
      const { address: pool, bump } = findAddress(seeds, LAUNCHPAD_AMM_PROGRAM_ID);
      data.writeUInt8(bump, POOL_BUMP);
      data.set(seeds[2], POOL_CREATOR);
      writeKey(data, POOL_BASE_MINT, mint);
      writeKey(data, POOL_QUOTE_TOKENS, tokenAccountOf(pool, account.quoteMint));
      setTokens(pool, quoteMint, RESERVES + fees);
      chain.setAccount(pool, {
        lamports: chain.rentExemptMinimum(poolBytes),
        owner: LAUNCHPAD_AMM_PROGRAM_ID,
        data,
      });
    },

    /** The address that the coin's curve names as the creator; undefined if there is no such coin. */
    creatorOf: (mint: string): string | undefined => read("CURVE", mint)?.creator,

    /**
     * Adds creator fees, as trades with the platform's new instructions do: to the pool of a
     * migrated coin, otherwise to the curve. If the account's layout is too old to record fees, its
     * data grows. `amount` is in the smallest unit of the coin's currency. Returns the signature.
     * Throws for a cashback coin, which the new instructions refuse.
     */
    addFees(mint: string, amount: bigint): string {
      const { curve, pool } = coinAddressesOf(mint);
      const stage = chain.account(pool) ? "POOL" : "CURVE";
      const account = read(stage, mint);
      if (!account) throw new Error(`There is no coin ${mint}.`);
      if (account.isCashback) throw new Error(`The fees of ${mint} go to its traders.`);
      const address = stage === "POOL" ? pool : curve;
      const quoteMint = new PublicKey(account.quoteMint);
      const holdsLamports = stage === "CURVE" && quoteMint.equals(WRAPPED_SOL);
      const signature = holdsLamports
        ? chain.transfer(address, amount)
        : chain.sendFromFaucet((faucet) =>
            depositTokens(faucet, quoteMint, new PublicKey(address), amount),
          );
      recordFees(stage, address, amount);
      return signature;
    },
  };
}

/** The data of a curve or pool, without the fields that only one of them has. */
function toFeeAccountData(
  stage: Stage,
  bytes: number,
  account: Omit<FeeAccount, "topUp" | "isComplete">,
): Buffer {
  const layout = PLACES[stage].layout;
  const data = resize(layout.discriminator, layout.bytes);
  writeKey(data, layout.creator, account.creator);
  writeKey(data, layout.quoteMint, account.quoteMint);
  data.writeUInt8(account.isCashback ? 1 : 0, layout.isCashback);
  data.writeUInt8(account.isHolderReward ? 1 : 0, layout.isHolderReward);
  data.writeBigUInt64LE(account.waiting, layout.creatorFee);
  return resize(data, bytes);
}

function writeKey(data: Buffer, offset: number, key: string): void {
  new PublicKey(key).toBuffer().copy(data, offset);
}

/** Returns a copy of this size, cut or padded with zeros. */
function resize(data: Uint8Array, bytes: number): Buffer {
  const resizedData = Buffer.alloc(bytes);
  resizedData.set(data.subarray(0, bytes));
  return resizedData;
}
