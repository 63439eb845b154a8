import { createHash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import { decodeCoin, keysOfCoin, type Coin } from "../chain/launchpad/coin-fees.ts";
import { readProgramCode, readPrograms, type Program } from "../chain/launchpad/deploys.ts";
import { COIN_BYTES, STAGES, type Stage } from "../chain/launchpad/fee-accounts.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  SWEEPS,
  transferCreatorFeesToPump,
  type Instruction,
} from "../chain/launchpad/instructions.ts";
import * as model from "../chain/launchpad/platform-model.ts";
import {
  addressesOfState,
  decodePlatformState,
  type PlatformAccounts,
} from "../chain/launchpad/platform-state.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID, LAUNCHPAD_PROGRAMS } from "../chain/launchpad/program-ids.ts";
import {
  PLATFORM_CRATE,
  TESTED_BUILDS,
  type ProgramName,
} from "../chain/launchpad/tested-builds.ts";
import { WRAPPED_SOL_MINT } from "../chain/launchpad/token-accounts.ts";
import { DerivedCreator, type Creator } from "../chain/launchpad/vaults.ts";
import { rentMinimumOf, type Rent } from "../chain/primitives/rent.ts";
import type { Accounts } from "../chain/rpc/read-accounts.ts";
import type { Simulation } from "../chain/rpc/simulate-transaction.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { COSTS, MAX_UNIT_LIMIT } from "../chain/units/instruction-costs.ts";
import { compileMessage, toTransaction } from "../chain/units/message.ts";
import { BASE_FEE_LAMPORTS } from "../chain/units/priority-fee.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import { toError } from "../observability/thrown.ts";

/** The name under which findings are reported. */
const PLATFORM = "--platform";

/** A trade between the read and the simulation looks like a difference, so it must repeat. */
const MAX_READS = 3;
/** Programs use more units than these on average, with unlucky addresses. */
const UNITS_MARGIN = 1.5;

/** An instruction, and what the model says of it. */
interface Step {
  readonly name: string;
  readonly programs: readonly ProgramName[];
  readonly instruction: Instruction;
  readonly run: (state: model.PlatformState) => model.PlatformState;
  /** The compute units that a collect requests for it at least. */
  readonly units: number;
}

/** What a transaction would do, by the model. */
interface Prediction {
  readonly steps: readonly Step[];
  /** How many instructions each step runs, itself included. */
  readonly traces: readonly number[];
  readonly after: model.PlatformState;
  readonly failure: model.PlatformFailure | undefined;
}

/** What to simulate: a creator's vaults, and perhaps a coin. */
interface Target extends PlatformAccounts {
  readonly isShared: boolean;
  /** Where the coin's fees are swept from. */
  readonly stages: readonly Stage[];
}

interface Outcome {
  readonly differences: readonly string[];
  readonly text: string;
  /** The programs of which an instruction had an effect. */
  readonly programs: readonly ProgramName[];
}

/**
 * Holds the model of the launch platform's five instructions against the deployed programs, by
 * simulations, which send and pay nothing. `address`: an account's address whose vaults to collect
 * from, besides the coins. Reports each finding as soon as it is known. Returns the deployment slots
 * of the programs that do as tested; a program that no named coin uses is not among them.
 */
export async function comparePlatform(needs: {
  rpc: Rpc;
  feePayer: string;
  mints: readonly string[];
  address: string | undefined;
  report: (finding: Finding) => void;
}): Promise<ReadonlyMap<ProgramName, number>> {
  const { rpc, feePayer, mints, address, report } = needs;
  const programs = await readPrograms(
    rpc,
    Object.entries(LAUNCHPAD_PROGRAMS).map(([name, id]) => ({ name: name as ProgramName, id })),
  );
  // One at a time: each takes megabytes.
  for (const program of programs) report(await checkBuild(rpc, program));

  const targets = [
    ...(address === undefined
      ? []
      : [{ name: `the address ${address}`, read: () => toVaultsOf(address) }]),
    ...mints.map((mint) => ({ name: `the coin ${mint}`, read: () => readCoin(mint) })),
  ];
  const usedPrograms = new Set<ProgramName>();
  let isDifferent = false;
  for (const { name, read } of targets) {
    const outcome = await compare(read).catch(toError);
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
  async function compare(read: () => Target | Promise<Target>): Promise<Outcome> {
    let minSlot = 0;
    for (let reads = 1; ; reads++) {
      const { outcome, slot } = await simulate(await read(), minSlot);
      if (outcome.differences.length === 0 || reads === MAX_READS) return outcome;
      minSlot = slot;
    }
  }

  async function readCoin(mint: string): Promise<Target> {
    const addresses = coinAddressesOf(mint);
    const { accounts, rent } = await readAll(keysOfCoin(addresses), 0);
    const coin = decodeCoin(addresses, accounts, rent);
    if (!coin) throw new Error("its accounts hold too much to be read exactly");
    return toTarget(addresses, coin);
  }

  async function readAll(keys: readonly string[], minSlot: number) {
    let result: { accounts: Accounts; slot: number; rent: Rent } | undefined;
    await rpc.readAccounts({
      groups: [keys],
      bytes: COIN_BYTES,
      minSlotOf: () => minSlot,
      take(_i, { accounts, slot, rent }) {
        if (slot < minSlot) return "older";
        result = { accounts, slot, rent };
        return "taken";
      },
    });
    return result!;
  }

  async function simulate(
    target: Target,
    minSlot: number,
  ): Promise<{ outcome: Outcome; slot: number }> {
    const keys = [feePayer, ...addressesOfState(target)];
    if (new Set(keys).size < keys.length) throw new Error("one account has two roles");
    const { accounts, slot, rent } = await readAll(keys, minSlot);
    const byAddress = new Map(keys.map((key, i) => [key, accounts[i]]));
    const before = decodePlatformState(target, byAddress, rent);
    const receiver = byAddress.get(target.creator.address);
    const canReceive =
      receiver?.executable !== true && receiver?.owner !== LAUNCHPAD_FEES_PROGRAM_ID;
    const prediction = predict(target, before, canReceive);
    if (prediction.steps.length === 0) throw new Error("no instruction applies to it");
    const payerBefore = byAddress.get(feePayer)?.lamports ?? 0n;
    const cost = BASE_FEE_LAMPORTS + prediction.after.paid;
    if (payerBefore < cost + rentMinimumOf(rent, 0))
      throw new Error(`the fee payer holds less than it costs (${cost} lamports)`);
    const trace = await rpc.simulateTransaction(compose(prediction.steps), {
      addresses: keys,
      minSlot: slot,
      innerInstructions: true,
    });
    if (!trace.invoked)
      throw new Error(
        `${trace.endpoint.host} simulates without innerInstructions: use another SOLANA_RPC_URL`,
      );
    const payerAfter = trace.accounts.get(feePayer)?.lamports ?? 0n;
    const actual = {
      ...decodePlatformState(target, trace.accounts, rent),
      paid: payerBefore - BASE_FEE_LAMPORTS - payerAfter,
    };
    return { outcome: toOutcome(before, prediction, actual, trace), slot: trace.slot };
  }

  /** The instructions in the order of a collect's transaction. */
  function predict(target: Target, before: model.PlatformState, canReceive: boolean): Prediction {
    const { creator, coin, shareholders, isShared, stages } = target;
    const steps: Step[] = [];
    const traces: number[] = [];
    let after = before;
    let failure: model.PlatformFailure | undefined;
    function attempt(run: () => model.PlatformState): void {
      try {
        after = run();
      } catch (error) {
        if (!(error instanceof model.PlatformFailure)) throw error;
        failure = error;
      }
    }
    function add(step: Step): void {
      if (failure) return;
      const { trace } = after;
      steps.push(step);
      attempt(() => step.run(after));
      traces.push(after.trace - trace);
    }
    const sweep = (stage: Stage) => {
      if (coin && stages.includes(stage)) add(sweepStep(stage, feePayer, creator, coin));
    };
    const transfer = () => {
      if (after.ammTokens !== undefined) add(transferStep(creator));
    };
    if (isShared && coin) {
      sweep("POOL");
      transfer();
      sweep("CURVE");
      add(
        distributeStep(
          coin,
          shareholders.map((each) => each.address),
        ),
      );
    } else {
      STAGES.forEach(sweep);
      transfer();
      if (canReceive) add(collectStep(creator));
    }
    if (!failure) attempt(() => model.endTransaction(before, after));
    return { steps, traces, after, failure };
  }

  function compose(steps: readonly Step[]): string {
    const blockhash = PublicKey.default.toBase58();
    const message = compileMessage(
      feePayer,
      steps.map(({ instruction }) => instruction),
      { unitLimit: MAX_UNIT_LIMIT, price: 0n },
      blockhash,
    );
    return toTransaction(message, feePayer);
  }
}

const sweepStep = (
  stage: Stage,
  feePayer: string,
  creator: Creator,
  coin: CoinAddresses,
): Step => ({
  name: `sweep of the ${stage.toLowerCase()}`,
  instruction: SWEEPS[stage](feePayer, creator, coin),
  ...(stage === "CURVE"
    ? { programs: ["LAUNCHPAD"], run: model.sweepCurve, units: COSTS.CURVE.units }
    : {
        programs: ["AMM"],
        run: model.sweepPool,
        units: COSTS.POOL.units + COSTS.ammVault.units,
      }),
});

const transferStep = (creator: Creator): Step => ({
  name: "AMM's transfer",
  programs: ["AMM"],
  instruction: transferCreatorFeesToPump(creator),
  run: model.transferCreatorFeesToPump,
  units: COSTS.amm.units,
});

const collectStep = (creator: Creator): Step => ({
  name: "collect",
  programs: ["LAUNCHPAD"],
  instruction: collectCreatorFee(creator),
  run: model.collectCreatorFee,
  units: COSTS.collect.units,
});

/** Its program reads the sharing config of the program FEES, and checks the shareholders with it. */
const distributeStep = (coin: CoinAddresses, shareholders: readonly string[]): Step => ({
  name: "distribution",
  programs: ["LAUNCHPAD", "FEES"],
  instruction: distributeCreatorFees(coin, shareholders),
  run: model.distributeCreatorFees,
  units: COSTS.distribution.units + shareholders.length * COSTS.payout.units,
});

function toVaultsOf(address: string): Target {
  const creator = new DerivedCreator(address);
  return { creator, coin: undefined, shareholders: [], isShared: false, stages: [] };
}

/** Throws why the coin cannot be checked. */
function toTarget(addresses: CoinAddresses, { places, sharing }: Coin): Target {
  const place = places.at(-1);
  if (!place) throw new Error("the launch platform has no such coin");
  if (places.some(({ account }) => account.quoteMint !== WRAPPED_SOL_MINT))
    throw new Error("it trades in another currency than SOL");
  const { sharingConfig } = addresses;
  const isShared = place.account.creator === sharingConfig.address;
  if (isShared && !sharing) throw new Error("its sharing config cannot be read");
  if (isShared && sharing?.isPaused) throw new Error("its distributions are paused");
  const creator = isShared ? sharingConfig : new DerivedCreator(place.account.creator);
  return {
    creator,
    coin: addresses,
    shareholders: isShared ? sharing!.shareholders : [],
    isShared,
    // The curve of a coin that has migrated may name another creator.
    stages: places
      .filter(({ account }) => account.creator === creator.address)
      .map(({ stage }) => stage),
  };
}

function toOutcome(
  before: model.PlatformState,
  { steps, traces, after, failure }: Prediction,
  actual: model.PlatformState,
  { err, unitsConsumed, invoked }: Simulation,
): Outcome {
  const names = steps.map(({ name }) => name).join(", ");
  const actualTraces = steps.map((_, i) => 1 + (invoked?.get(i) ?? 0));
  const movedAmount = receivedIn(after) - receivedIn(before);
  const programs = [
    ...new Set(
      steps.flatMap(({ programs }, i) => (traces[i]! > model.TRACE.withoutEffect ? programs : [])),
    ),
  ];
  if (failure || err !== null) {
    const text = `${names} ${err === null ? "succeed" : `fail with ${JSON.stringify(err)}`}`;
    const isAsTested = failure !== undefined && err !== null;
    const prediction = failure ? `a failure (${failure.error}: ${failure.message})` : "success";
    return {
      differences: isAsTested ? [] : [`expected ${prediction}`],
      text,
      programs: [],
    };
  }
  const unitLimit = UNITS_MARGIN * (COSTS.spread.units + sumOf(steps.map(({ units }) => units)));
  return {
    differences: [
      ...differencesOf({ ...after, trace: 0 }, { ...actual, trace: 0 }),
      ...steps.flatMap(({ name }, i) =>
        actualTraces[i] === traces[i]
          ? []
          : [`the ${name} runs ${actualTraces[i]} instructions instead of ${traces[i]}`],
      ),
      ...(unitsConsumed > unitLimit
        ? [`it uses ${unitsConsumed} compute units, more than ${unitLimit}`]
        : []),
    ],
    text: `${names} move ${movedAmount} lamports with ${sumOf(actualTraces)} instructions and ${unitsConsumed} compute units`,
    programs,
  };
}

const receivedIn = ({ receiver, shareholders }: model.PlatformState): bigint =>
  [receiver, ...shareholders].reduce((sum, { lamports }) => sum + lamports, 0n);

/** Names each amount in which two states differ. */
function differencesOf(ofModel: object, actual: object, path = ""): string[] {
  return Object.entries(ofModel).flatMap(([name, value]: [string, unknown]) => {
    const other = (actual as Record<string, unknown>)[name];
    const here = path + name;
    if (typeof value === "object" && value !== null)
      return differencesOf(value, other as object, `${here}.`);
    return value === other ? [] : [`${here} is ${String(other)} instead of ${String(value)}`];
  });
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, each) => sum + each, 0);

/** Compares a program's bytes with the tested builds. A deployed program is padded with zeros. */
async function checkBuild(
  rpc: Rpc,
  { name, id, deploySlot }: Program & { readonly name: ProgramName; readonly id: string },
): Promise<Finding> {
  const program = `${name} ${id}, deployed in slot ${deploySlot ?? "unknown"},`;
  const code = await readProgramCode(rpc, id).catch(toError);
  if (code instanceof Error) return poor(PLATFORM, `${program} cannot be read: ${code.message}`);
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
