import { createHash } from "node:crypto";
import { leastDistribution, partOf } from "../chain/balances/shared-fees.ts";
import { distributionsOf, isWithPool, rentOf } from "../chain/launchpad/choose-sweeps.ts";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { UNCOLLECTABLE } from "../chain/launchpad/coin-fees.ts";
import {
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAMS,
  type ProgramName,
} from "../chain/launchpad/program-ids.ts";
import { ALL_BPS, type Shareholder } from "../chain/launchpad/sharing-config.ts";
import { DerivedCreator, type Creator } from "../chain/launchpad/vaults.ts";
import { rentMinimumOf } from "../chain/primitives/rent.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { MAX_UNIT_LIMIT, unitLimitOf } from "../chain/units/instruction-costs.ts";
import { toTransaction } from "../chain/units/message.ts";
import { BASE_FEE_LAMPORTS } from "../chain/units/priority-fee.ts";
import { readPrograms, MAX_ACCOUNT_BYTES } from "../checks/deploys.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { recordPlatformCheck } from "../checks/platform-checks.ts";
import { isBase58 } from "../contract/base58.ts";
import { toError } from "../observability/thrown.ts";
import type { createChainServices } from "../services.ts";
import type { Redis } from "../store/redis.ts";
import { PLATFORM_CRATE, TESTED_BUILDS } from "./tested-builds.ts";

/** A mint is an address. */
const MINT_BYTES = 32;

/** The name under which findings are reported. */
const PLATFORM = "--platform";

/** A trade between the read and the simulation looks like a difference, so it must repeat. */
const MAX_READS = 3;
/** Programs use more units than these on average, with unlucky addresses. */
const UNITS_MARGIN = 1.5;

/**
 * Holds what a collect would do, as the service plans it for the tested programs, against the
 * deployed programs, by simulations, which send and pay nothing. `address`: an account's address
 * whose vaults to collect from, besides the coins. Reports each finding as soon as it is known.
 * Records in Redis the deployments of the programs that do as tested; a program that no named coin
 * uses is not among them. Rejects with an RpcError if the programs cannot be read.
 */
export async function comparePlatform(needs: {
  chain: ReturnType<typeof createChainServices>;
  redis: Redis | undefined;
  mints: readonly string[];
  address: string | undefined;
  report: (finding: Finding) => void;
}): Promise<void> {
  const { redis, mints, address, report } = needs;
  const { feePayer, rpc, readWallets, readUnits, composer, floors } = needs.chain;
  const wrongMint = mints.find((mint) => !isBase58(mint, MINT_BYTES));
  if (wrongMint !== undefined) {
    report(bad(PLATFORM, `expected the mints of coins, got ${JSON.stringify(wrongMint)}`));
    return;
  }
  const programNames = Object.keys(LAUNCHPAD_PROGRAMS) as ProgramName[];
  const programs = await readPrograms(
    rpc,
    programNames.map((name) => ({ name, id: LAUNCHPAD_PROGRAMS[name] })),
  );
  // One at a time: each takes megabytes.
  for (const program of programs) report(await checkBuild(rpc, program));

  const usedPrograms = new Set<ProgramName>();
  let isDifferent = false;
  for (const mint of new Set(address === undefined ? mints : [undefined, ...mints])) {
    const name = mint === undefined ? `the address ${address}` : `the coin ${mint}`;
    const outcome = await compare(mint).catch(toError);
    if (outcome instanceof Error) {
      report(poor(PLATFORM, `${name} is not checked: ${outcome.message}`));
      continue;
    }
    const { differences, text } = outcome;
    for (const program of outcome.programs) usedPrograms.add(program);
    if (differences.length > 0) isDifferent = true;
    report(
      differences.length > 0
        ? bad(PLATFORM, `${name} does not do as tested: ${differences.join("; ")} (${text})`)
        : good(PLATFORM, `${name} does as tested: ${text}`),
    );
  }
  const { used = [], idle = [] } = Object.groupBy(programs, ({ name }) =>
    usedPrograms.has(name) ? "used" : "idle",
  );
  if (idle.length > 0)
    report(
      poor(
        PLATFORM,
        `nothing that moves fees was simulated with ${idle.map(({ name }) => name).join(", ")}: name coins whose fees wait on a curve (LAUNCHPAD), in a pool (AMM), and for shareholders (FEES)`,
      ),
    );
  const checkedSlots = new Map(
    used.flatMap(({ name, deploySlot }) =>
      deploySlot === undefined ? [] : [[name, deploySlot] as const],
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

  /** Returns whose vaults a collect empties, and whom it pays, in the sharing config's order. */
  async function readTarget(coin: CoinAddresses) {
    const { sharingConfig } = coin;
    const [state] = await readWallets([{ account: sharingConfig, coins: [coin] }]);
    if (!state || state instanceof Error) throw toError(state);
    const found = state.coins[0]!;
    const creator = found.places.at(-1)?.account.creator;
    if (creator === undefined) throw new Error(UNCOLLECTABLE.NO_SUCH_COIN);
    if (creator !== sharingConfig.address) return toTarget(creator);
    if (!found.sharing) throw new Error("its sharing config cannot be read");
    return { creator: sharingConfig, receivers: found.sharing.shareholders };
  }

  /** Simulates the collect of a coin, or of `address`. Rejects with why it cannot. */
  async function simulate(coin: CoinAddresses | undefined) {
    const { creator, receivers } = coin ? await readTarget(coin) : toTarget(address!);
    const isShared = creator === coin?.sharingConfig;
    const largest = receivers.toSorted((a, b) => b.bps - a.bps)[0];
    if (!largest) throw new Error(UNCOLLECTABLE.SHARED);
    const account = new DerivedCreator(largest.address);
    const { fees, units } = await readUnits({ account, coins: coin ? [coin] : [] }, undefined);
    const unit = units.find(({ kind }) => (kind === "distribution") === isShared);
    const part = unit && composer.choosePart(account, unit.sweeps, unit.vaults);
    const reason = fees.coins.findLast((each) => each.reason !== null)?.reason;
    if (!part)
      throw new Error(
        reason
          ? UNCOLLECTABLE[reason]
          : "its fees are too little for a collect, or need too much rent",
      );
    const [distribution] = distributionsOf(part.sweeps);
    const amount = distribution?.distributable ?? part.amount;
    const rent = rentOf(part.sweeps);
    const cost = BASE_FEE_LAMPORTS + rent;

    const addresses = [feePayer, ...receivers.map((receiver) => receiver.address)];
    if (new Set(addresses).size < addresses.length) throw new Error("one account has two roles");
    const { ammVault, ammVaultAuthority } = creator;
    const keys = [...addresses, ammVault, ammVaultAuthority];
    const found = await rpc.getAccounts(keys);
    const accounts = new Map(keys.map((key, i) => [key, found[i]]));
    // They move too, but are left out of balances: nobody but a stranger who wants this sends any.
    if ([ammVault, ammVaultAuthority].some((key) => accounts.get(key)?.space === 0))
      throw new Error("somebody has sent lamports to its AMM vault, or to the vault's authority");
    const lamportsBefore = (key: string) => accounts.get(key)?.lamports ?? 0n;
    const states = receivers.map(({ address: key }) => {
      const state = accounts.get(key);
      if (state?.executable || (!isShared && state?.owner === LAUNCHPAD_FEES_PROGRAM_ID))
        throw new Error(`${key} cannot be paid`);
      return state;
    });
    if (amount < leastDistribution(receivers, states, fees.vaults.rent))
      throw new Error("a receiver would stay below its rent-exempt minimum");
    if (lamportsBefore(feePayer) < cost + rentMinimumOf(fees.vaults.rent, 0))
      throw new Error(`the fee payer holds less than it costs (${cost} lamports)`);

    const terms = { priorityFee: 0n, unitLimit: MAX_UNIT_LIMIT, guard: 1n };
    const simulation = await rpc.simulateTransaction(
      toTransaction(composer.compose([part], terms), feePayer),
      { addresses, minSlot: fees.slot },
    );
    const { err, unitsConsumed, slot } = simulation;
    floors.require(account.address, slot);
    const gainOf = (key: string): bigint =>
      (simulation.accounts.get(key)?.lamports ?? 0n) - lamportsBefore(key);
    const unitLimit = UNITS_MARGIN * unitLimitOf([part], 0);
    const differenceOf = (name: string, actual: bigint, planned: bigint) =>
      actual === planned ? [] : [`${name} is ${actual} lamports instead of ${planned}`];
    const differences = [
      ...differenceOf("the rent that is paid", -gainOf(feePayer) - BASE_FEE_LAMPORTS, rent),
      ...receivers.flatMap(({ address: key }) =>
        differenceOf(`what ${key} gets`, gainOf(key), partOf(amount, receivers, key)),
      ),
    ];
    if (unitsConsumed > unitLimit)
      differences.push(`it uses ${unitsConsumed} compute units, more than ${unitLimit}`);
    const usesAmm = part.withAmm || (distribution !== undefined && isWithPool(distribution));
    // The launch platform checks the shareholders with its program FEES.
    const used = { LAUNCHPAD: true, AMM: usesAmm, FEES: isShared };
    const programs = programNames.filter((name) => used[name]);
    return {
      differences: err === null ? differences : [`it fails with ${JSON.stringify(err)}`],
      text: `${programs.join(", ")} are to move ${amount} lamports; ${unitsConsumed} compute units`,
      programs,
    };
  }
}

const toTarget = (address: string): { creator: Creator; receivers: readonly Shareholder[] } => ({
  creator: new DerivedCreator(address),
  receivers: [{ address, bps: ALL_BPS }],
});

/** Compares a program's bytes with the tested builds. A deployed program is padded with zeros. */
async function checkBuild(
  rpc: Rpc,
  { name, id }: { readonly name: ProgramName; readonly id: string },
): Promise<Finding> {
  const read = await readPrograms(rpc, [{ id }], MAX_ACCOUNT_BYTES).catch(toError);
  if (read instanceof Error) return poor(PLATFORM, `${name} ${id} cannot be read: ${read.message}`);
  const [{ deploySlot, code } = {}] = read;
  const program = `${name} ${id}, deployed in slot ${deploySlot ?? "unknown"},`;
  if (!code) return poor(PLATFORM, `${program} cannot be read: it has no ProgramData account`);
  const builds = Object.entries(TESTED_BUILDS).map(([version, { programs }]) => ({
    version,
    ...programs[name],
  }));
  const build = builds.find(
    ({ bytes, sha256 }) =>
      sha256 === hashOf(code.subarray(0, bytes)) &&
      code.subarray(bytes).every((byte) => byte === 0),
  );
  if (build)
    return good(
      PLATFORM,
      `${program} is the build of ${PLATFORM_CRATE} ${build.version} that was tested: SHA-256 ${build.sha256} of ${build.bytes} bytes, then ${code.length - build.bytes} zeros`,
    );
  const testedBuilds = builds.map(({ version, sha256 }) => `${sha256} (${version})`);
  return poor(
    PLATFORM,
    `${program} is no build that was tested: SHA-256 ${hashOf(code)} of its ${code.length} bytes; tested are ${testedBuilds.join(", ")}`,
  );
}

const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
