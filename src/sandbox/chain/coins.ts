import { deriveAddress, findAddress, toKeyBytes } from "../../chain/primitives/derive-address.ts";
import { coinAddressesOf, poolSeedsOf } from "../../chain/launchpad/coin-addresses.ts";
import { PLACES, type Stage } from "../../chain/launchpad/fee-accounts.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../../chain/launchpad/program-ids.ts";
import type { Shareholder } from "../../chain/launchpad/sharing-config.ts";
import { WRAPPED_SOL_MINT } from "../../chain/launchpad/token-accounts.ts";
import { AMOUNT, setMint, setProgramAccount, setWrappedSol, writeFields } from "./accounts.ts";
import type { Chain } from "./chain.ts";
import { setSharingConfig } from "./sharing.ts";

/** A coin to launch. */
export interface NewCoin {
  /** In base58, like `creator`. */
  readonly mint: string;
  readonly creator: string;
  /** Who gets the fees instead of `creator`. The curve then names the sharing config as creator. */
  readonly shareholders?: readonly Shareholder[] | undefined;
  /**
   * The coin's holders or traders get the fees. For holders, the curve names an address of the
   * launch platform as creator.
   */
  readonly kind?: "holderRewards" | "cashback" | undefined;
  /**
   * The mint of the currency in which the coin trades, if that is not SOL. Such a coin has only the
   * account of its curve: nothing can sweep or migrate it.
   */
  readonly quoteMint?: string | undefined;
  /** The fees on the curve, in the currency's smallest unit. */
  readonly fees?: bigint | undefined;
}

export type Coins = ReturnType<typeof createCoins>;

/** Curves and pools hold this amount besides fees. So tests notice a sweep that takes too much. */
const RESERVES = 2_000_000_000n;

/** Offsets of fields that only the sandbox's programs read. Source: see PLACES. */
const CURVE_REAL_QUOTE_RESERVES = 32;
const CURVE_COMPLETE = 48;
const POOL_BUMP = 8;
const POOL_CREATOR = 11;
const POOL_BASE_MINT = 43;
const POOL_QUOTE_TOKENS = 171;

function creatorFor({ shareholders, kind, mint, creator }: NewCoin): string {
  if (shareholders) return coinAddressesOf(mint).sharingConfig.address;
  return kind === "holderRewards"
    ? deriveAddress(["holder-rewards", toKeyBytes(mint)], LAUNCHPAD_PROGRAM_ID)
    : creator;
}

/** The fields that both a curve and a pool have. */
function feeFieldsOf(stage: Stage, coin: NewCoin, fees: bigint) {
  const { layout } = PLACES[stage];
  return [
    [0, layout.discriminator],
    [layout.creator, creatorFor(coin)],
    [layout.isCashback, Number(coin.kind === "cashback")],
    [layout.isHolderReward, Number(coin.kind === "holderRewards")],
    [layout.creatorFee, fees],
  ] as const;
}

/** Coins of the launch platform on the sandbox's chain. All methods work without a transaction. */
export function createCoins(chain: Chain) {
  const launched = new Map<string, NewCoin>();

  /** Adds to the u64 at `offset` of an account's data, and to its lamports. */
  function add(address: string, offset: number, amount: bigint, lamports: bigint): void {
    const account = chain.account(address)!;
    const data = Buffer.from(account.data);
    data.writeBigUInt64LE(data.readBigUInt64LE(offset) + amount, offset);
    chain.setAccount(address, { ...account, lamports: account.lamports + lamports, data });
  }

  return {
    addressesOf: coinAddressesOf,

    /** Creates a coin that trades on its bonding curve. */
    launch(coin: NewCoin): void {
      const { mint, shareholders, quoteMint, fees = 0n } = coin;
      launched.set(mint, coin);
      setMint(chain, mint);
      setProgramAccount(
        chain,
        {
          address: coinAddressesOf(mint).curve,
          owner: LAUNCHPAD_PROGRAM_ID,
          bytes: PLACES.CURVE.layout.bytes,
          lamports: quoteMint ? 0n : RESERVES + fees,
        },
        [
          ...feeFieldsOf("CURVE", coin, fees),
          [CURVE_REAL_QUOTE_RESERVES, RESERVES],
          // Without a mint, the coin trades in SOL.
          [PLACES.CURVE.layout.quoteMint, quoteMint ?? Buffer.alloc(32)],
        ],
      );
      if (shareholders) setSharingConfig(chain, mint, shareholders);
    },

    /** Moves a coin from its curve to a pool. The fees on the curve stay there. */
    migrate(mint: string, fees = 0n): void {
      const { curve, pool, poolTokens } = coinAddressesOf(mint);
      const account = chain.account(curve)!;
      chain.setAccount(curve, {
        ...account,
        lamports: account.lamports - RESERVES,
        data: writeFields(Buffer.from(account.data), [
          [CURVE_REAL_QUOTE_RESERVES, 0n],
          [CURVE_COMPLETE, 1],
        ]),
      });

      const { layout, program: owner } = PLACES.POOL;
      const seeds = poolSeedsOf(mint);
      setProgramAccount(chain, { address: pool, owner, bytes: layout.bytes }, [
        ...feeFieldsOf("POOL", launched.get(mint)!, fees),
        [POOL_BUMP, findAddress(seeds, owner).bump],
        [POOL_CREATOR, seeds[2]],
        [POOL_BASE_MINT, mint],
        [layout.quoteMint, WRAPPED_SOL_MINT],
        [POOL_QUOTE_TOKENS, poolTokens],
      ]);
      setWrappedSol(chain, pool, RESERVES + fees);
    },

    /**
     * Adds creator fees, as trades do: to the pool of a migrated coin, otherwise to the curve.
     */
    addFees(mint: string, lamports: bigint): void {
      const { curve, pool, poolTokens } = coinAddressesOf(mint);
      const { CURVE, POOL } = PLACES;
      if (chain.account(pool)) {
        add(pool, POOL.layout.creatorFee, lamports, 0n);
        add(poolTokens, AMOUNT, lamports, lamports);
      } else add(curve, CURVE.layout.creatorFee, lamports, lamports);
    },
  };
}
