import { createHash } from "node:crypto";
import { distributionsOf, isWithPool, rentOf } from "../chain/launchpad/choose-sweeps.ts";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { UNCOLLECTABLE } from "../chain/launchpad/coin-fees.ts";
import { LAUNCHPAD_PROGRAMS, type ProgramName } from "../chain/launchpad/program-ids.ts";
import { DerivedCreator } from "../chain/launchpad/vaults.ts";
import { readPrograms, MAX_ACCOUNT_BYTES, type Program } from "../checks/deploys.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { recordPlatformCheck } from "../checks/platform-checks.ts";
import { toError } from "../observability/thrown.ts";
import type { createChainServices } from "../services.ts";
import type { Redis } from "../store/redis.ts";
import { PLATFORM_CRATE, TESTED_BUILDS } from "./tested-builds.ts";

/** The name under which findings are reported. */
const PLATFORM = "--platform";

/** A trade between the read and the simulation looks like a difference, so it must repeat. */
const MAX_READS = 3;

/**
 * Holds what a collect would do, as the service plans it for the tested programs, against the
 * deployed programs, by simulations, which send and pay nothing. `address`: an account's address
 * whose vaults to collect from, besides the coins. Reports each finding as soon as it is known.
 * Records in Redis the deployments of the programs that do as tested; a program that no named coin
 * uses is not among them.
 */
export async function comparePlatform(needs: {
  chain: ReturnType<typeof createChainServices>;
  redis: Redis | undefined;
  mints: readonly string[];
  address: string | undefined;
  report: (finding: Finding) => void;
}): Promise<void> {
  const { redis, mints, address, report } = needs;
  const { rpc, readWallets, readUnits, composer, simulations } = needs.chain;
  const programNames = Object.keys(LAUNCHPAD_PROGRAMS) as ProgramName[];
  const deploySlots = new Map<ProgramName, number | undefined>();
  // One at a time: each takes megabytes.
  for (const name of programNames) {
    const program = { name, id: LAUNCHPAD_PROGRAMS[name] };
    const read = await readPrograms(rpc, [program], MAX_ACCOUNT_BYTES).catch(toError);
    if (read instanceof Error)
      report(poor(PLATFORM, `${name} ${program.id} cannot be read: ${read.message}`));
    else {
      deploySlots.set(name, read[0]!.deploySlot);
      report(checkBuild(read[0]!));
    }
  }

  const usedPrograms = new Set<ProgramName>();
  let isDifferent = false;
  for (const mint of new Set(address === undefined ? mints : [undefined, ...mints])) {
    const name = mint === undefined ? `the address ${address}` : `the coin ${mint}`;
    try {
      const { differences, programs, text } = await compare(mint);
      for (const program of programs) usedPrograms.add(program);
      if (differences.length > 0) isDifferent = true;
      report(
        differences.length > 0
          ? bad(PLATFORM, `${name} does not do as tested: ${differences.join("; ")} (${text})`)
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
  const checkedSlots = new Map(
    [...deploySlots].flatMap(([name, slot]) =>
      slot !== undefined && usedPrograms.has(name) ? [[name, slot]] : [],
    ),
  );
  if (isDifferent || checkedSlots.size === 0) return;
  const isKept = redis && (await recordPlatformCheck(redis, checkedSlots));
  const end = isKept
    ? "Redis keeps this for 90 days"
    : "without Redis, the service does not know of it";
  report(good(PLATFORM, `checked: ${[...checkedSlots.keys()].join(", ")}; ${end}`));

  /** Compares until a read shows no difference. Rejects with why the coin cannot be checked. */
  async function compare(mint: string | undefined) {
    for (let reads = 1; ; reads++) {
      const outcome = await simulate(mint === undefined ? undefined : coinAddressesOf(mint));
      if (outcome.differences.length === 0 || reads === MAX_READS) return outcome;
    }
  }

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
  async function simulate(coin: CoinAddresses | undefined) {
    const account = new DerivedCreator(coin ? await readReceiver(coin) : address!);
    const { fees, units } = await readUnits({ account, coins: coin ? [coin] : [] }, undefined);
    const unit = units.find(
      ({ sweeps }) => !coin || sweeps.some(({ coin: { mint } }) => mint === coin.mint),
    );
    const part = unit && composer.choosePart(account, unit.sweeps, unit.vaults);
    if (!part) {
      const reason = fees.coins.findLast((each) => each.reason !== null)?.reason;
      throw new Error(reason ? UNCOLLECTABLE[reason] : "its fees are too little for a collect");
    }
    const [distribution] = distributionsOf(part.sweeps);
    const usesAmm = part.withAmm || (distribution !== undefined && isWithPool(distribution));
    // The launch platform checks the shareholders with its program FEES.
    const used = { LAUNCHPAD: true, AMM: usesAmm, FEES: distribution !== undefined };
    const programs = programNames.filter((name) => used[name]);
    const text = `${programs.join(", ")} are to move ${distribution?.distributable ?? part.amount} lamports`;
    const simulation = await simulations.simulate([part], fees.slot);
    if ("err" in simulation)
      return { programs, text, differences: [`it fails with ${JSON.stringify(simulation.err)}`] };
    const inVault = distribution && simulation.after(distribution.coin.sharingConfig.creatorVault);
    const differences = [
      differenceOf("the rent that is paid", simulation.rent, rentOf(part.sweeps)),
      differenceOf(`what ${account.address} gets`, simulation.movedBy(part), part.amount),
      // Parts are rounded down.
      inVault &&
        inVault - fees.vaults.rentMinimum >= distribution.shareholders.length &&
        `${inVault} lamports stay in the vault`,
    ].filter((difference) => typeof difference === "string");
    return {
      programs,
      differences,
      text: `${text}; ${simulation.unitsConsumed} compute units`,
    };
  }
}

function differenceOf(name: string, actual: bigint, planned: bigint): string | undefined {
  return actual === planned ? undefined : `${name} is ${actual} lamports instead of ${planned}`;
}

/** Compares a program's bytes with the tested builds. A deployed program is padded with zeros. */
function checkBuild({ name, id, deploySlot, code }: Program & { name: ProgramName; id: string }) {
  const program = `${name} ${id}, deployed in slot ${deploySlot ?? "unknown"},`;
  if (!code) return poor(PLATFORM, `${program} cannot be read: it has no ProgramData account`);
  const build = Object.entries(TESTED_BUILDS).find(([, { programs }]) => {
    const { bytes, sha256 } = programs[name];
    const isPadded = code.subarray(bytes).every((byte) => byte === 0);
    return isPadded && sha256 === hashOf(code.subarray(0, bytes));
  });
  return build
    ? good(PLATFORM, `${program} is the tested build of ${PLATFORM_CRATE} ${build[0]}`)
    : poor(
        PLATFORM,
        `${program} is no build that was tested: SHA-256 ${hashOf(code)} of its ${code.length} bytes`,
      );
}

const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
