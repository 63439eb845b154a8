import { distributionsOf, isWithPool, rentOf } from "../chain/launchpad/choose-sweeps.ts";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { UNCOLLECTABLE } from "../chain/launchpad/coin-fees.ts";
import { LAUNCHPAD_PROGRAMS, type ProgramName } from "../chain/launchpad/program-ids.ts";
import { DerivedCreator } from "../chain/launchpad/vaults.ts";
import type { Program } from "../checks/deploys.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { recordPlatformCheck } from "../checks/platform-checks.ts";
import { toError } from "../observability/thrown.ts";
import type { createChainServices } from "../services.ts";
import type { Redis } from "../store/redis.ts";

/** The name under which findings are reported. */
const PLATFORM = "--platform";

/** A trade between the read and the simulation looks like a difference, so it must repeat. */
const MAX_READS = 3;

/**
 * Holds what a collect would do, as the service plans it for the tested programs, against the
 * deployed programs, by simulations, which send and pay nothing. `address`: an account's address
 * whose vaults to collect from, besides the coins. Reports each finding as soon as it is known.
 * Records in Redis the deployments of the `programs` that do as tested; a program that no named
 * coin uses is not among them.
 */
export async function comparePlatform(needs: {
  chain: ReturnType<typeof createChainServices>;
  redis: Redis | undefined;
  programs: readonly Program[];
  mints: readonly string[];
  address: string | undefined;
  report: (finding: Finding) => void;
}): Promise<void> {
  const { redis, mints, address, report } = needs;
  const { readWallets, readUnits, composer, simulations } = needs.chain;
  const programNames = Object.keys(LAUNCHPAD_PROGRAMS) as ProgramName[];
  const usedPrograms = new Set<string>();
  let isDifferent = false;
  for (const mint of new Set(address === undefined ? mints : [undefined, ...mints])) {
    const name = mint === undefined ? `the address ${address}` : `the coin ${mint}`;
    try {
      let outcome = await simulate(mint);
      for (let reads = 1; outcome.difference && reads < MAX_READS; reads++)
        outcome = await simulate(mint);
      const { difference, used, text } = outcome;
      for (const program of used) usedPrograms.add(program);
      if (difference) isDifferent = true;
      report(
        difference
          ? bad(PLATFORM, `${name} does not do as tested: ${difference} (${text})`)
          : good(PLATFORM, `${name} does as tested: ${text}`),
      );
    } catch (error) {
      report(poor(PLATFORM, `${name} is not checked: ${toError(error).message}`));
    }
  }
  const idlePrograms = programNames.filter((name) => !usedPrograms.has(name));
  if (idlePrograms.length > 0)
    report(
      poor(
        PLATFORM,
        `nothing that moves fees was simulated with ${idlePrograms.join(", ")}: name coins whose fees wait on a curve (LAUNCHPAD), in a pool (AMM), and for shareholders (FEES)`,
      ),
    );
  const checked = needs.programs.filter(
    ({ name, deploySlot }) => usedPrograms.has(name) && deploySlot !== undefined,
  );
  if (isDifferent || checked.length === 0) return;
  const kept =
    redis &&
    (await Promise.all(
      checked.map(({ name, deploySlot }) => recordPlatformCheck(redis, name, deploySlot!)),
    ));
  const end = kept?.every(Boolean)
    ? "Redis keeps this for 90 days"
    : "without Redis, the service does not know of it";
  report(good(PLATFORM, `checked: ${checked.map(({ name }) => name).join(", ")}; ${end}`));

  /** Returns whom a coin's fees are paid to: its creator, or its largest shareholder. */
  async function readReceiver(coin: CoinAddresses): Promise<string> {
    const { sharingConfig } = coin;
    const [state] = await readWallets([{ account: sharingConfig, coins: [coin] }]);
    if (!state || state instanceof Error) throw toError(state);
    const { places, sharing } = state.coins[0]!;
    const creator = places.at(-1)?.account.creator;
    if (creator === undefined) throw new Error(UNCOLLECTABLE.NO_SUCH_COIN);
    if (creator !== sharingConfig.address) return creator;
    const [largest] = sharing?.shareholders.toSorted((a, b) => b.bps - a.bps) ?? [];
    if (!largest) throw new Error(UNCOLLECTABLE.SHARED);
    return largest.address;
  }

  /** Simulates the collect of a coin, or of `address`. Rejects with why it cannot. */
  async function simulate(mint: string | undefined) {
    const coin = mint === undefined ? undefined : coinAddressesOf(mint);
    const account = new DerivedCreator(coin ? await readReceiver(coin) : address!);
    const { fees, units } = await readUnits({ account, coins: coin ? [coin] : [] }, undefined);
    const unit = units.find(
      ({ sweeps }) => mint === undefined || sweeps.some(({ coin }) => coin.mint === mint),
    );
    const part = unit && composer.choosePart(account, unit.sweeps, unit.vaults);
    if (!part) {
      const reason = fees.coins.findLast((each) => each.reason !== null)?.reason;
      throw new Error(reason ? UNCOLLECTABLE[reason] : "its fees are too little for a collect");
    }
    const [distribution] = distributionsOf(part.sweeps);
    const usesAmm = part.withAmm || (distribution !== undefined && isWithPool(distribution));
    // The launch platform checks the shareholders with its program FEES.
    const uses = { LAUNCHPAD: true, AMM: usesAmm, FEES: distribution !== undefined };
    const used = programNames.filter((name) => uses[name]);
    const text = `${used.join(", ")} are to move ${distribution?.distributable ?? part.amount} lamports`;
    const simulation = await simulations.simulate([part], fees.slot);
    const difference =
      "err" in simulation
        ? `it fails with ${JSON.stringify(simulation.err)}`
        : [
            differenceOf("the rent that is paid", simulation.rent, rentOf(part.sweeps)),
            differenceOf(`what ${account.address} gets`, simulation.movedBy(part), part.amount),
          ]
            .filter(Boolean)
            .join("; ");
    return { used, text, difference };
  }
}

function differenceOf(name: string, actual: bigint, planned: bigint): string {
  return actual === planned ? "" : `${name} is ${actual} lamports instead of ${planned}`;
}
