import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import type { Floors } from "../../slots/stale-balances.ts";
import { distributionsOf } from "../../choose-sweeps.ts";
import { readWrappedSol } from "../../token-accounts.ts";
import type { CollectPart, Composer, TransactionTerms } from "../message/composer.ts";
import { MAX_UNIT_LIMIT, toTransaction } from "../message/message.ts";

export type Simulated = Awaited<ReturnType<typeof simulate>>;

/**
 * Simulates a transaction of one or several accounts. `feePayer` is in base58. Rejects with an
 * {@link RpcError}.
 */
export async function simulate(
  needs: { rpc: Rpc; floors: Pick<Floors, "landedSlotOf">; composer: Composer; feePayer: string },
  parts: readonly CollectPart[],
) {
  const { rpc, floors, composer, feePayer } = needs;
  const sweeps = parts.flatMap((part) => part.sweeps);
  const distributions = distributionsOf(sweeps);
  const simulatedTerms: TransactionTerms = { price: 0n, unitLimit: MAX_UNIT_LIMIT, guard: 1n };
  const base64 = toTransaction(composer.compose(parts, simulatedTerms), feePayer);
  const ammVaults = [
    ...parts.filter(({ withAmm }) => withAmm).map(({ account }) => account.ammVault),
    ...distributions
      .filter(({ withPool }) => withPool)
      .map(({ coin }) => coin.sharingConfig.ammVault),
  ];
  const addresses = [
    ...parts.map(({ account }) => account.creatorVault),
    feePayer,
    ...distributions.map(({ coin }) => coin.sharingConfig.creatorVault),
    ...ammVaults,
  ];
  const minSlot = Math.max(...parts.map(({ account }) => floors.landedSlotOf(account.address)));
  const [simulated, [read] = []] = await Promise.all([
    rpc.simulateTransaction(base64, addresses, minSlot),
    // Only sweeps cost rent. Some nodes do not report the fee payer's previous balance, so read it.
    // It may be of an earlier slot: fees that other collects paid after that slot then count as
    // rent.
    sweeps.length > 0 ? rpc.getAccounts([[feePayer]]).then((groups) => groups[0]) : [],
  ]);
  const { accounts, payerBefore, ...result } = simulated;
  const found = new Map(accounts?.map((account, i) => [addresses[i]!, account]));
  /**
   * Returns the lamports of a vault, or of the fee payer, after the transaction; undefined if
   * unknown.
   */
  const after = (address: string): Lamports | undefined => found.get(address)?.lamports;
  const [before, left] = [payerBefore ?? read?.lamports, after(feePayer)];
  return {
    ...result,
    simulatedTerms,
    after,
    /** By AMM vault's address: the lamports that remain there after the AMM's transfer. */
    leftInAmm: new Map<string, Lamports>(
      ammVaults.map((each) => [each, readWrappedSol(found.get(each)) ?? toLamports(0)]),
    ),
    /** What the fee payer lost besides the base fee; undefined when unknown. */
    rent:
      before !== undefined && left !== undefined
        ? saturatingSubtract(before, toLamports(left + BASE_FEE_LAMPORTS))
        : undefined,
  };
}
