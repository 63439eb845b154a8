import { rentMinimumOf, type Rent } from "../../src/chain/primitives/rent.ts";
import { ALL_BPS, type Shareholder } from "../../src/chain/launchpad/sharing-config.ts";
import { TOKEN_ACCOUNT_BYTES } from "../../src/chain/launchpad/token-accounts.ts";

/*
 * What the launch platform's five instructions do, as measured on the platform's builds of October
 * 2026 (crate pump-rust-client 0.3.0 to 0.5.0). test/platform holds this model against the builds,
 * and against the sandbox's stand-ins. All amounts are lamports.
 *
 * Each instruction takes the state of the accounts and returns the next one, or throws a
 * PlatformFailure. A transaction runs them in order; `endTransaction` is the runtime's last check.
 *
 * Not modelled: paused configs, shareholders of 0 basis points, executable receivers, and amounts
 * above 1.8 million SOL.
 */

interface CurveState {
  readonly lamports: bigint;
  readonly bytes: number;
  /** What trades have paid in: `real_sol_reserves`. */
  readonly reserves: bigint;
  /** The stored creator fee. The program ignores it in a curve that is too short. */
  readonly creatorFee: bigint;
  readonly protocolFees: bigint;
}

interface PoolState {
  readonly lamports: bigint;
  readonly bytes: number;
  readonly creatorFees: bigint;
  /** In the pool's token account, fees included. */
  readonly wrappedSol: bigint;
  /** `virtual_quote_reserves`: each sweep adds what it moves. */
  readonly virtualReserves: bigint;
}

/** An address without data that the fees program does not own, or another program's account. */
interface ReceiverState {
  readonly lamports: bigint;
  readonly bytes: number;
}

interface ShareholderState extends ReceiverState, Pick<Shareholder, "bps"> {}

/** A creator (or sharing config) with its vaults, one coin, and those who are paid. */
export interface PlatformState {
  readonly rent: Rent;
  /** What the transaction's payer has paid so far, its fee not included. */
  readonly paid: bigint;
  /** The instructions run so far, inner ones included: at most {@link MAX_TRACE}. */
  readonly trace: number;
  readonly creatorVault: bigint;
  /** The lamports at the AMM vault's address. */
  readonly ammVault: bigint;
  /** The wrapped SOL in the AMM vault; undefined if it is no token account yet. */
  readonly ammTokens: bigint | undefined;
  readonly ammVaultAuthority: bigint;
  readonly curve: CurveState;
  readonly pool: PoolState;
  /** Whom `collectCreatorFee` pays. */
  readonly receiver: ReceiverState;
  /** Whom `distributeCreatorFees` pays, in the sharing config's order. */
  readonly shareholders: readonly ShareholderState[];
}

/** An instruction that fails, with its error code in a node's form. */
export class PlatformFailure extends Error {
  override readonly name = "PlatformFailure";
  readonly error: number | string;
  constructor(error: number | string, message: string) {
    super(message);
    this.error = error;
  }
}

/** The sizes of the newest layouts, to which sweeps grow older accounts. */
const CURVE_BYTES = 166;
const POOL_BYTES = 287;
/** A shorter curve counts as having no fees. */
const LEAST_CURVE_BYTES_WITH_FEES = 141;

/** The most instructions that a transaction runs, inner ones included. Source: Agave. */
const MAX_TRACE = 64;

/** How many instructions each runs, itself and inner ones included. */
const TRACE = {
  /** Any of the five that has no effect. */
  withoutEffect: 1,
  collect: 3,
  curve: 2,
  pool: 3,
  transfer: 8,
  /** Besides one for each payout. */
  distribution: 2,
  /** More in a sweep whose payer grows the curve or pool, or tops up the curve. */
  growth: 1,
  /** More in a curve's sweep if the creator vault is below its minimum. */
  vaultRent: 1,
  /** More in a pool's sweep that creates the AMM vault. */
  ammVault: 5,
  /** More if lamports lie at the AMM vault's address: to fund the rest, and to allocate. */
  ammVaultWithLamports: 1,
} as const;

/** The rent-exempt minimum of an account of the System program. */
const walletMinimum = (rent: Rent): bigint => rentMinimumOf(rent, 0);
const tokenMinimum = (rent: Rent): bigint => rentMinimumOf(rent, TOKEN_ACCOUNT_BYTES);

/** `collect_creator_fee`: pays the receiver what the vault holds above its minimum. */
export function collectCreatorFee(state: PlatformState): PlatformState {
  const { receiver, rent } = state;
  const amount = aboveMinimum(state);
  const lamports = receiver.lamports + amount;
  // The receiver would stay below its minimum: no effect, and no error.
  if (amount === 0n || lamports < rentMinimumOf(rent, receiver.bytes))
    return ran(state, TRACE.withoutEffect);
  return {
    ...ran(state, TRACE.collect),
    creatorVault: state.creatorVault - amount,
    receiver: { ...receiver, lamports },
  };
}

/**
 * `sweep_creator_fee` of the main program: grows an old curve, raises it to what it must hold, and
 * moves its creator fee to the creator vault.
 */
export function sweepCurve(state: PlatformState): PlatformState {
  const { curve, creatorVault, rent } = state;
  const hasFees = curve.bytes >= LEAST_CURVE_BYTES_WITH_FEES;
  const fee = hasFees ? curve.creatorFee : 0n;
  const protocolFees = hasFees ? curve.protocolFees : 0n;
  const bytes = Math.max(curve.bytes, CURVE_BYTES);
  const needed = rentMinimumOf(rent, bytes) + curve.reserves + fee + protocolFees;
  const topUp = min(above(needed, curve.lamports), rentMinimumOf(rent, bytes));
  // A vault below its minimum gets all of it, whatever it holds.
  const vaultRent = fee > 0n && creatorVault < walletMinimum(rent) ? walletMinimum(rent) : 0n;
  const lamports = curve.lamports + topUp;
  if (lamports < fee)
    throw new PlatformFailure("ArithmeticOverflow", "the curve holds less than its creator fee");
  const trace =
    (fee > 0n ? TRACE.curve : TRACE.withoutEffect) +
    (topUp > 0n ? TRACE.growth : 0) +
    (vaultRent > 0n ? TRACE.vaultRent : 0);
  return {
    ...ran(state, trace),
    paid: state.paid + topUp + vaultRent,
    creatorVault: creatorVault + vaultRent + fee,
    curve: { ...curve, bytes, lamports: lamports - fee, creatorFee: 0n },
  };
}

/**
 * `sweep_creator_fee` of the AMM: grows an old pool, and moves its creator fees to the AMM vault,
 * which it creates if it is missing.
 */
export function sweepPool(state: PlatformState): PlatformState {
  const { pool, rent } = state;
  const isOld = pool.bytes < POOL_BYTES;
  const growth = isOld ? above(rentMinimumOf(rent, POOL_BYTES), pool.lamports) : 0n;
  const fees = isOld ? 0n : pool.creatorFees;
  const next = {
    ...ran(state, TRACE.withoutEffect + (growth > 0n ? TRACE.growth : 0)),
    paid: state.paid + growth,
    pool: {
      ...pool,
      bytes: Math.max(pool.bytes, POOL_BYTES),
      lamports: pool.lamports + growth,
      creatorFees: 0n,
      wrappedSol: pool.wrappedSol - fees,
      virtualReserves: pool.virtualReserves + fees,
    },
  };
  if (fees === 0n) return next;
  if (pool.wrappedSol < fees)
    throw new PlatformFailure(6023, "the pool's token account holds less than the creator fees");
  const withVault = createAmmVault(next);
  return {
    ...ran(withVault, TRACE.pool - TRACE.withoutEffect),
    ammVault: withVault.ammVault + fees,
    ammTokens: withVault.ammTokens + fees,
  };
}

/** Lamports at the address count towards the account's minimum, and the rest becomes wrapped SOL. */
function createAmmVault(state: PlatformState): PlatformState & { readonly ammTokens: bigint } {
  const { ammVault, ammTokens, rent } = state;
  if (ammTokens !== undefined) return { ...state, ammTokens };
  const missing = above(tokenMinimum(rent), ammVault);
  const trace =
    TRACE.ammVault + (ammVault > 0n ? TRACE.ammVaultWithLamports * (missing > 0n ? 2 : 1) : 0);
  return {
    ...ran(state, trace),
    paid: state.paid + missing,
    ammVault: ammVault + missing,
    ammTokens: ammVault + missing - tokenMinimum(rent),
  };
}

/**
 * `transfer_creator_fees_to_pump`: unwraps the AMM vault into the creator vault, with all lamports
 * above the AMM vault's minimum, wrapped or not, and those of its authority.
 */
export function transferCreatorFeesToPump(state: PlatformState): PlatformState {
  const { ammVault, ammTokens, ammVaultAuthority, creatorVault, rent } = state;
  if (ammTokens === undefined)
    throw ammVault > 0n
      ? new PlatformFailure(3007, "the System program owns the AMM vault")
      : new PlatformFailure(3012, "there is no AMM vault");
  const amount = ammVault - tokenMinimum(rent);
  if (amount < 0n || creatorVault + amount < walletMinimum(rent))
    return ran(state, TRACE.withoutEffect);
  return {
    ...ran(state, TRACE.transfer),
    creatorVault: creatorVault + amount + ammVaultAuthority,
    ammVault: tokenMinimum(rent),
    ammTokens: 0n,
    ammVaultAuthority: 0n,
  };
}

/**
 * `distribute_creator_fees`: divides what the vault holds above its minimum. Each part is rounded
 * down, and the rest stays in the vault.
 */
export function distributeCreatorFees(state: PlatformState): PlatformState {
  const { curve, shareholders, rent } = state;
  if (curve.bytes >= LEAST_CURVE_BYTES_WITH_FEES && curve.creatorFee > 0n)
    throw new PlatformFailure(6095, "fees wait on the curve");
  const amount = aboveMinimum(state);
  if (amount < leastDistribution(shareholders, rent)) return ran(state, TRACE.withoutEffect);
  const parts = shareholders.map(({ bps }) => (amount * BigInt(bps)) / BigInt(ALL_BPS));
  return {
    ...ran(state, TRACE.distribution + parts.filter((part) => part > 0n).length),
    creatorVault: state.creatorVault - parts.reduce((sum, part) => sum + part, 0n),
    shareholders: shareholders.map((shareholder, i) => ({
      ...shareholder,
      lamports: shareholder.lamports + parts[i]!,
    })),
  };
}

/**
 * The least amount that a distribution pays out: each shareholder's part must raise it to its
 * rent-exempt minimum. 0 if all have theirs.
 */
function leastDistribution(shareholders: readonly ShareholderState[], rent: Rent): bigint {
  return shareholders.reduce((least, { lamports, bytes, bps }) => {
    const missing = above(rentMinimumOf(rent, bytes), lamports);
    const needed = (missing * BigInt(ALL_BPS) + BigInt(bps) - 1n) / BigInt(bps);
    return needed > least ? needed : least;
  }, 0n);
}

/**
 * The runtime's check at a transaction's end: no account that the transaction credited or resized
 * may be below its minimum.
 */
export function endTransaction(before: PlatformState, after: PlatformState): PlatformState {
  if (after.trace > MAX_TRACE)
    throw new PlatformFailure("MaxInstructionTraceLengthExceeded", "too many instructions");
  const earlierAccounts = accountsOf(before);
  for (const [i, { lamports, bytes }] of accountsOf(after).entries()) {
    const minimum = rentMinimumOf(after.rent, bytes);
    const earlier = earlierAccounts[i]!;
    const isExempt = lamports === 0n || lamports >= minimum;
    const wasBelow = earlier.bytes === bytes && earlier.lamports < minimum;
    if (!isExempt && !(wasBelow && lamports <= earlier.lamports))
      throw new PlatformFailure("InsufficientFundsForRent", "an account is below its minimum");
  }
  return after;
}

function accountsOf(state: PlatformState): ReceiverState[] {
  const { creatorVault, ammVault, ammTokens, ammVaultAuthority } = state;
  return [
    { lamports: creatorVault, bytes: 0 },
    { lamports: ammVault, bytes: ammTokens === undefined ? 0 : TOKEN_ACCOUNT_BYTES },
    { lamports: ammVaultAuthority, bytes: 0 },
    state.curve,
    state.pool,
    state.receiver,
    ...state.shareholders,
  ];
}

/** What the creator vault holds above its minimum. */
const aboveMinimum = ({ creatorVault, rent }: PlatformState): bigint =>
  above(creatorVault, walletMinimum(rent));

const ran = <State extends PlatformState>(state: State, instructions: number): State => ({
  ...state,
  trace: state.trace + instructions,
});

const above = (amount: bigint, minimum: bigint): bigint =>
  amount > minimum ? amount - minimum : 0n;
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
