import type { PublicKey } from "@solana/web3.js";
import { CollectError } from "../../collect-error.ts";
import type { Floors } from "../../slots/floors.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, choosePrice, priorityFee, type PricePolicy } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import { isFeePayerShort, type TransactionError } from "../../rpc/transaction-error.ts";
import { collectableWith, distributionsOf, type Vaults } from "../../sweeps.ts";
import { readWrappedSol } from "../../token-accounts.ts";
import { writableOf, type CollectPart, type Composer, type TransactionTerms } from "../message/composer.ts";
import { MAX_UNIT_LIMIT, toTransaction } from "../message/message.ts";

/** What a simulated transaction did. */
export interface Simulated extends Omit<
  Awaited<ReturnType<Rpc["simulateTransaction"]>>,
  "accounts" | "payerBefore"
> {
  /** Those of the simulated transaction. */
  readonly simulatedTerms: TransactionTerms;
  /** The lamports of each part's creator vault afterwards; undefined when unknown. */
  readonly vaultsAfter: readonly Lamports[] | undefined;
  /** The lamports of the creator vault of each distribution's sharing config afterwards; undefined when unknown. */
  readonly sharedVaultsAfter: readonly Lamports[] | undefined;
  /** What the AMM leaves in each of its vaults that the parts empty, in lamports, by the vault's address. */
  readonly leftInAmm: ReadonlyMap<string, Lamports>;
  readonly feePayerAfter: Lamports | undefined;
  /** What the fee payer lost besides the base fee; undefined when unknown. */
  readonly rent: Lamports | undefined;
}

/** The terms of a transaction, without a guard. */
export type Price = Omit<TransactionTerms, "guard">;

/** Far above what a collect and a sweep use. Also the basis of the real limit when the node does not report the used units. */
const SIMULATION_UNIT_LIMIT = 400_000;
const SIMULATION_UNIT_LIMIT_PER_SWEEP = 150_000;
/** A distribution has two sweeps, the AMM's part and up to ten transfers. */
const SWEEPS_PER_DISTRIBUTION = 4;
const UNIT_LIMIT_MARGIN = 1.2;
/**
 * The lowest limits of a part. An instruction uses less when its vault is empty, the AMM's almost none: the
 * simulation may see it empty, and fees may arrive before the transaction lands. On the sandbox a collect
 * uses 5,000 to 12,000 units, depending on the addresses, and the AMM's part about 25,000 more.
 */
const MIN_UNIT_LIMIT = 10_000;
const MIN_UNIT_LIMIT_WITH_AMM = 60_000;
/** `npm run bench:shared-coins`: up to 52,000, and 112,000 with the pool. */
const MIN_UNIT_LIMIT_OF_DISTRIBUTION = 70_000;
const MIN_UNIT_LIMIT_OF_DISTRIBUTION_WITH_POOL = 140_000;

export type Simulator = ReturnType<typeof createSimulator>;

/** Simulates transactions of one or several accounts, and chooses their terms. */
export function createSimulator(
  needs: PricePolicy & {
    rpc: Rpc;
    floors: Pick<Floors, "landedSlotOf">;
    composer: Composer;
    feePayer: PublicKey;
    minLamports: Lamports;
  },
) {
  const { rpc, floors, composer, feePayer, minLamports } = needs;

  async function simulate(parts: readonly CollectPart[]): Promise<Simulated> {
    const sweeps = parts.flatMap((part) => part.sweeps);
    const distributions = distributionsOf(sweeps);
    const count = sweeps.length + distributions.length * (SWEEPS_PER_DISTRIBUTION - 1);
    const unitLimit = SIMULATION_UNIT_LIMIT + count * SIMULATION_UNIT_LIMIT_PER_SWEEP;
    const simulatedTerms = {
      ...{ version: composer.version(), price: 0n, guard: 1n },
      unitLimit: Math.min(unitLimit, MAX_UNIT_LIMIT),
    };
    const base64 = toTransaction(composer.compose(parts, simulatedTerms), feePayer.toBase58());
    const vaults = parts.map(({ account }) => account.creatorVault);
    const sharedVaults = distributions.map(({ coin }) => coin.sharingConfig.creatorVault);
    const ammVaults = [
      ...parts.filter(({ withAmm }) => withAmm).map(({ account }) => account.ammVault),
      ...distributions.filter(({ withPool }) => withPool).map(({ coin }) => coin.sharingConfig.ammVault),
    ];
    const addresses = [...vaults, feePayer.toBase58(), ...sharedVaults, ...ammVaults];
    const minSlot = Math.max(...parts.map(({ account }) => floors.landedSlotOf(account.address)));
    const [simulated, [read] = []] = await Promise.all([
      rpc.simulateTransaction(base64, addresses, minSlot),
      // Without sweeps nothing uses the fee payer's account. For nodes that do not say what it held: this may be in
      // another slot, so that the fees of other collects count as rent.
      sweeps.length > 0 ? rpc.getAccounts([[feePayer.toBase58()]]).then((groups) => groups[0]) : [],
    ]);
    const { accounts, payerBefore, ...result } = simulated;
    const balances = accounts?.map(({ lamports }) => lamports);
    const feePayerAfter = balances?.[vaults.length];
    const before = payerBefore ?? read?.lamports;
    const rent =
      before !== undefined && feePayerAfter !== undefined
        ? saturatingSubtract(before, toLamports(feePayerAfter + BASE_FEE_LAMPORTS))
        : undefined;
    return {
      ...result,
      simulatedTerms,
      vaultsAfter: balances?.slice(0, vaults.length),
      sharedVaultsAfter: balances?.slice(vaults.length + 1),
      leftInAmm: new Map(
        ammVaults.map((each) => [each, readWrappedSol(accounts?.[addresses.indexOf(each)]) ?? toLamports(0)]),
      ),
      feePayerAfter,
      rent,
    };
  }

  /** What a simulated transaction moves for the part of this index; undefined when that is less than `minLamports`. */
  function movedIfEnough(
    part: CollectPart,
    vaults: Vaults,
    { vaultsAfter, leftInAmm }: Simulated,
    index = 0,
  ): Lamports | undefined {
    // Compare what the vaults and coins lose, not what the address gains: its owner may withdraw at any moment.
    const left = part.withVaults ? (vaultsAfter?.[index] ?? vaults.rentMinimum) : vaults.rentMinimum;
    const kept = saturatingSubtract(left, vaults.rentMinimum) + (leftInAmm.get(part.account.ammVault) ?? 0n);
    const moved = saturatingSubtract(collectableWith(part.sweeps, vaults), toLamports(kept));
    return moved < minLamports ? undefined : moved;
  }

  /** The price per compute unit for a transaction with these parts. Never rejects. */
  const priceOf = (parts: readonly CollectPart[], unitLimit: number): Promise<bigint> =>
    choosePrice(rpc, parts.flatMap(writableOf), unitLimit, needs);

  async function termsOf(
    parts: readonly CollectPart[],
    { unitsConsumed, simulatedTerms: { version } }: Simulated,
  ): Promise<Price> {
    const units = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const leasts = parts.flatMap(({ withAmm, sweeps }) => [
      withAmm ? MIN_UNIT_LIMIT_WITH_AMM : MIN_UNIT_LIMIT,
      ...distributionsOf(sweeps).map(({ withPool }) =>
        withPool ? MIN_UNIT_LIMIT_OF_DISTRIBUTION_WITH_POOL : MIN_UNIT_LIMIT_OF_DISTRIBUTION,
      ),
    ]);
    const least = leasts.reduce((sum, each) => sum + each, 0);
    const unitLimit = Math.min(Math.max(units, least), MAX_UNIT_LIMIT);
    return { version, unitLimit, price: await priceOf(parts, unitLimit) };
  }

  /** The fee payer's lamports above `rentMinimum`, after all fees and rents; undefined when unknown. */
  function spendableAfter(
    { feePayerAfter }: Simulated,
    { unitLimit, price }: Price,
    rentMinimum: Lamports,
  ): bigint | undefined {
    if (feePayerAfter === undefined) return undefined;
    // The simulation pays the base fee only: the priority fee depends on the units that it measures.
    return feePayerAfter - priorityFee(price, unitLimit) - rentMinimum;
  }

  return { simulate, movedIfEnough, priceOf, termsOf, spendableAfter };
}

/** Throws {@link CollectError} `fee-payer-short` if that is why a simulation failed. */
export function assertFeePayerPays(err: TransactionError): void {
  if (!isFeePayerShort(err)) return;
  const detail = `the simulation failed: ${JSON.stringify(err)}`;
  throw new CollectError({ kind: "fee-payer-short", detail });
}
