import { createHash } from "node:crypto";
import { leastDistribution, partOf, toSharedFees } from "../chain/balances/shared-fees.ts";
import {
  distributionsOf,
  isWithPool,
  MAX_RENT_LAMPORTS,
  rentOf,
  toVaults,
} from "../chain/launchpad/choose-sweeps.ts";
import { coinAddressesOf } from "../chain/launchpad/coin-addresses.ts";
import {
  decodeCoin,
  keysOfCoin,
  toCoinFees,
  UNCOLLECTABLE,
  type Coin,
  type SweepableFees,
} from "../chain/launchpad/coin-fees.ts";
import { readPrograms, MAX_ACCOUNT_BYTES } from "../checks/deploys.ts";
import { COIN_BYTES } from "../chain/launchpad/fee-accounts.ts";
import {
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAMS,
  type ProgramName,
} from "../chain/launchpad/program-ids.ts";
import { ALL_BPS, type Shareholder } from "../chain/launchpad/sharing-config.ts";
import { DerivedCreator, type Creator } from "../chain/launchpad/vaults.ts";
import { toLamports } from "../chain/primitives/lamports.ts";
import { rentMinimumOf, type Rent } from "../chain/primitives/rent.ts";
import type { Account } from "../chain/rpc/rpc-results.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { createComposer } from "../chain/units/composer.ts";
import { MAX_UNIT_LIMIT, unitLimitOf } from "../chain/units/instruction-costs.ts";
import { toTransaction } from "../chain/units/message.ts";
import type { PlannedPart } from "../chain/units/part.ts";
import { BASE_FEE_LAMPORTS } from "../chain/units/priority-fee.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { toError } from "../observability/thrown.ts";
import { PLATFORM_CRATE, TESTED_BUILDS } from "./tested-builds.ts";

/** The name under which findings are reported. */
const PLATFORM = "--platform";

/** A trade between the read and the simulation looks like a difference, so it must repeat. */
const MAX_READS = 3;
/** Programs use more units than these on average, with unlucky addresses. */
const UNITS_MARGIN = 1.5;
const ONE = toLamports(1);

/** Whose fees to collect, of which coin. */
interface Target {
  readonly mint: string | undefined;
  /** The receiver, or the coin's sharing config. */
  readonly creator: Creator;
  /** Whom the collect pays, in the sharing config's order. */
  readonly receivers: readonly Shareholder[];
  readonly isShared: boolean;
}

/** What was read of a target, by address, in one slot. */
interface State {
  readonly accounts: ReadonlyMap<string, Account | undefined>;
  readonly slot: number;
  readonly rent: Rent;
}

/** What a collect does on the tested programs. */
interface Plan {
  readonly part: PlannedPart;
  /** What all receivers get. */
  readonly amount: bigint;
  readonly programs: readonly ProgramName[];
}

interface Outcome {
  readonly differences: readonly string[];
  readonly text: string;
  readonly programs: readonly ProgramName[];
  readonly slot: number;
}

/**
 * Holds what a collect would do, as the service plans it for the tested programs, against the
 * deployed programs, by simulations, which send and pay nothing. `address`: an account's address
 * whose vaults to collect from, besides the coins. Reports each finding as soon as it is known.
 * Returns the deployment slots of the programs that do as tested; a program that no named coin uses
 * is not among them.
 */
export async function comparePlatform(needs: {
  rpc: Rpc;
  feePayer: string;
  mints: readonly string[];
  address: string | undefined;
  report: (finding: Finding) => void;
}): Promise<ReadonlyMap<ProgramName, number>> {
  const { rpc, feePayer, mints, address, report } = needs;
  const composer = createComposer({
    feePayer,
    minCollectLamports: ONE,
    maxRentLamports: MAX_RENT_LAMPORTS,
  });
  const programs = await readPrograms(
    rpc,
    Object.entries(LAUNCHPAD_PROGRAMS).map(([name, id]) => ({ name: name as ProgramName, id })),
  );
  // One at a time: each takes megabytes.
  for (const program of programs) report(await checkBuild(rpc, program));

  const targets = [
    ...(address === undefined
      ? []
      : [{ name: `the address ${address}`, find: () => toTarget(undefined, address) }]),
    ...mints.map((mint) => ({ name: `the coin ${mint}`, find: () => findTarget(mint) })),
  ];
  const usedPrograms = new Set<ProgramName>();
  let isDifferent = false;
  for (const { name, find } of targets) {
    const outcome = await compare(find).catch(toError);
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
  const idlePrograms = programs.filter(({ name }) => !usedPrograms.has(name));
  if (idlePrograms.length > 0)
    report(
      poor(
        PLATFORM,
        `nothing that moves fees was simulated with ${idlePrograms.map(({ name }) => name).join(", ")}: name coins whose fees wait on a curve (LAUNCHPAD), in a pool (AMM), and for shareholders (FEES)`,
      ),
    );
  return new Map(
    programs.flatMap(({ name, deploySlot }) =>
      !isDifferent && usedPrograms.has(name) && deploySlot !== undefined
        ? [[name, deploySlot] as const]
        : [],
    ),
  );

  /** Compares until a read shows no difference. Rejects with why the target cannot be checked. */
  async function compare(find: () => Target | Promise<Target>): Promise<Outcome> {
    let minSlot = 0;
    for (let reads = 1; ; reads++) {
      const outcome = await simulate(await find(), minSlot);
      if (outcome.differences.length === 0 || reads === MAX_READS) return outcome;
      minSlot = outcome.slot;
    }
  }

  async function findTarget(mint: string): Promise<Target> {
    const addresses = coinAddressesOf(mint);
    const { places, sharing } = toCoin(mint, await readAll(keysOfCoin(addresses), 0));
    const creator = places.at(-1)?.account.creator;
    if (creator === undefined) throw new Error(UNCOLLECTABLE.NO_SUCH_COIN);
    if (creator !== addresses.sharingConfig.address) return toTarget(mint, creator);
    if (!sharing) throw new Error("its sharing config cannot be read");
    return {
      mint,
      creator: addresses.sharingConfig,
      isShared: true,
      receivers: sharing.shareholders,
    };
  }

  async function readAll(keys: readonly string[], minSlot: number): Promise<State> {
    if (new Set(keys).size < keys.length) throw new Error("one account has two roles");
    let state: State | undefined;
    await rpc.readAccounts({
      groups: [keys],
      bytes: COIN_BYTES,
      minSlotOf: () => minSlot,
      take(_i, { accounts, slot, rent }) {
        if (slot < minSlot) return false;
        state = { accounts: new Map(keys.map((key, i) => [key, accounts[i]])), slot, rent };
        return true;
      },
    });
    return state!;
  }

  async function simulate(target: Target, minSlot: number): Promise<Outcome> {
    const { mint, creator, receivers, isShared } = target;
    const addresses = [feePayer, ...receivers.map((receiver) => receiver.address)];
    const state = await readAll(
      [
        ...[...addresses, creator.ammVaultAuthority],
        ...(isShared ? [] : [creator.creatorVault, creator.ammVault]),
        ...(mint === undefined ? [] : keysOfCoin(coinAddressesOf(mint))),
      ],
      minSlot,
    );
    const { part, amount, programs } = toPlan(target, state);
    const lamportsBefore = (key: string) => state.accounts.get(key)?.lamports ?? 0n;
    const rent = rentOf(part.sweeps);
    const cost = BASE_FEE_LAMPORTS + rent;
    if (lamportsBefore(feePayer) < cost + rentMinimumOf(state.rent, 0))
      throw new Error(`the fee payer holds less than it costs (${cost} lamports)`);
    const message = composer.compose([part], {
      priorityFee: 0n,
      unitLimit: MAX_UNIT_LIMIT,
      guard: 1n,
    });
    const { err, unitsConsumed, accounts, slot } = await rpc.simulateTransaction(
      toTransaction(message, feePayer),
      { addresses, minSlot: state.slot },
    );
    const gainOf = (key: string): bigint =>
      (accounts.get(key)?.lamports ?? 0n) - lamportsBefore(key);
    const unitLimit = UNITS_MARGIN * unitLimitOf([part], 0);
    const compared: (readonly [name: string, actual: bigint, planned: bigint])[] = [
      ["the rent that is paid", -gainOf(feePayer) - BASE_FEE_LAMPORTS, rent],
      ...receivers.map((receiver) => {
        const planned = partOf(amount, receivers, receiver.address);
        return [`what ${receiver.address} gets`, gainOf(receiver.address), planned] as const;
      }),
    ];
    const differences =
      err === null
        ? [
            ...compared.flatMap(([name, actual, planned]) =>
              actual === planned ? [] : `${name} is ${actual} lamports instead of ${planned}`,
            ),
            ...(unitsConsumed > unitLimit
              ? [`it uses ${unitsConsumed} compute units, more than ${unitLimit}`]
              : []),
          ]
        : [`it fails with ${JSON.stringify(err)}`];
    const text = `${programs.join(", ")} are to move ${amount} lamports; ${unitsConsumed} compute units`;
    return { differences, text, programs, slot };
  }

  /** Throws why the target cannot be checked. */
  function toPlan(target: Target, { accounts, rent }: State): Plan {
    const { mint, creator, receivers, isShared } = target;
    // They move too, but are left out of balances: nobody but a stranger who wants this sends any.
    if ([creator.ammVault, creator.ammVaultAuthority].some((key) => isWallet(accounts.get(key))))
      throw new Error("somebody has sent lamports to its AMM vault, or to the vault's authority");
    const coin = mint === undefined ? undefined : toCoin(mint, { accounts, rent });
    const largest = receivers.toSorted((a, b) => b.bps - a.bps)[0];
    if (!largest) throw new Error(UNCOLLECTABLE.SHARED);
    const account = new DerivedCreator(largest.address);
    // A distribution pays the address directly.
    const vaults = isShared
      ? toVaults(undefined, undefined, rent)
      : toVaults(accounts.get(creator.creatorVault), accounts.get(creator.ammVault), rent);
    const fees = coin ? toFees(coin, account.address, isShared) : [];
    const sweeps = new Set(fees.flatMap(({ sweep }) => sweep ?? []));
    const part = composer.choosePart(account, [...sweeps], vaults);
    const reason = fees.findLast((each) => each.reason !== null)?.reason;
    if (!part)
      throw new Error(
        reason
          ? UNCOLLECTABLE[reason]
          : "its fees are too little for a collect, or need too much rent",
      );
    const [distribution] = distributionsOf(part.sweeps);
    const amount = distribution?.distributable ?? part.amount;

    const states = receivers.map(({ address: key }) => {
      const state = accounts.get(key);
      if (state?.executable || (!isShared && state?.owner === LAUNCHPAD_FEES_PROGRAM_ID))
        throw new Error(`${key} cannot be paid`);
      return state;
    });
    if (amount < leastDistribution(receivers, states, rent))
      throw new Error("a receiver would stay below its rent-exempt minimum");
    const usesAmm = part.withAmm || (distribution !== undefined && isWithPool(distribution));
    return {
      part,
      amount,
      programs: [
        "LAUNCHPAD",
        ...(usesAmm ? (["AMM"] as const) : []),
        // The launch platform checks the shareholders with its program FEES.
        ...(distribution ? (["FEES"] as const) : []),
      ],
    };
  }

  function toFees(coin: Coin, address: string, isShared: boolean): SweepableFees[] {
    if (!isShared) return toCoinFees(coin, address);
    if (!coin.sharing) throw new Error("its sharing config cannot be read");
    return toSharedFees(coin, coin.sharing, {
      address,
      feePayer,
      minCollectLamports: ONE,
      maxRentLamports: MAX_RENT_LAMPORTS,
      reasonFound: () => undefined,
    });
  }
}

const toTarget = (mint: string | undefined, address: string): Target => ({
  mint,
  creator: new DerivedCreator(address),
  isShared: false,
  receivers: [{ address, bps: ALL_BPS }],
});

const isWallet = (account: Account | undefined): boolean => account?.data.length === 0;

/** Throws if the coin's accounts cannot be used. */
function toCoin(mint: string, { accounts, rent }: Pick<State, "accounts" | "rent">): Coin {
  const addresses = coinAddressesOf(mint);
  const coin = decodeCoin(
    addresses,
    keysOfCoin(addresses).map((key) => accounts.get(key)),
    rent,
  );
  if (!coin) throw new Error("its accounts hold too much to be read exactly");
  return coin;
}

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
