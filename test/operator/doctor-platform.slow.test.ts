import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { shortenCurve } from "../support/chain-levers.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { runMain } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";
import { curveOf } from "../support/launchpad-instructions.ts";

const SOL = 1_000_000_000n;
const GREEDY = fileURLToPath(new URL("../support/programs/greedy-launchpad.so", import.meta.url));

let sandbox: TestSandbox;
afterEach(() => sandbox.close());

async function start(options?: Parameters<typeof startTestSandbox>[0]): Promise<void> {
  sandbox = await startTestSandbox(options);
}

const doctor = (...args: string[]) => doctorWith({}, ...args);

async function doctorWith(env: Record<string, string>, ...args: string[]) {
  const program = runMain({ ...sandbox.env, ...AMPLE_DEADLINES, ...env }, ["doctor", ...args]);
  const exitCode = await program.exitCode();
  const lines = program.output().trim().split("\n");
  return {
    ...{ exitCode, lines },
    last: lines.at(-1)!,
    platform: lines.filter((line) => line.includes("  --platform: ")),
    /** The line about a coin. */
    lineOf: (name: string) =>
      lines.find((line) => line.includes(`  --platform: `) && line.includes(name)),
  };
}

describe("npm run doctor -- --platform", () => {
  it("finds that every kind of collect does as tested, and sends nothing", async () => {
    await start();
    const { chain, coins } = sandbox;
    const creator = sandbox.account("creator");
    const [onCurve, old, migrated, emptied, shared, strangers] = Array.from(
      { length: 6 },
      newMint,
    ) as [string, string, string, string, string, string];
    coins.launch({ mint: onCurve, creator: creator.address, fees: SOL });
    coins.launch({ mint: old, creator: newMint(), fees: SOL });
    shortenCurve(chain, old, 151);
    coins.launch({ mint: migrated, creator: newMint(), fees: SOL / 3n });
    coins.migrate(migrated, SOL / 7n);
    coins.launch({ mint: emptied, creator: newMint() });
    const holders = [newMint(), newMint()] as const;
    chain.setBalance(holders[0], SOL);
    chain.setBalance(holders[1], SOL / 2n);
    const shareholders = [
      { address: holders[0], bps: 3_333 },
      { address: holders[1], bps: 6_667 },
    ];
    coins.launch({ mint: shared, creator: newMint(), shareholders, fees: SOL });
    coins.migrate(shared, 123_456_789n);
    coins.launch({ mint: strangers, creator: newMint(), kind: "holderRewards", fees: SOL });
    const mints = [onCurve, old, migrated, emptied, shared, strangers];
    const { exitCode, last, platform, lineOf } = await doctor(
      "--platform",
      ...mints,
      `--id=${creator.id}`,
    );
    for (const name of [onCurve, old, migrated, shared, creator.address])
      expect(lineOf(name), platform.join("\n")).toMatch(/^ok {5}.* does as tested: /);
    // The rest of the fees becomes the vault's minimum.
    expect(lineOf(shared)).toMatch(
      / does as tested: LAUNCHPAD, AMM, FEES are to move 1122806549 lamports$/,
    );
    const notChecked = (name: string) => lineOf(name)!.split(" is not checked: ")[1];
    expect(notChecked(emptied)).toBe("No fees wait here.");
    expect(notChecked(strangers)).toBe("The coin's creator fees go to its holders.");
    expect(lineOf("checked: LAUNCHPAD, AMM, FEES")).toContain("without Redis");
    expect(last).toMatch(/^Nothing is wrong/);
    expect(exitCode).toBe(0);
    expect(chain.ledger()).toHaveLength(0);
  });

  it("names what a changed program does, and exits with 1", async () => {
    await start({ launchpadFile: GREEDY });
    const { chain, coins } = sandbox;
    const mint = newMint();
    coins.launch({ mint, creator: newMint(), fees: SOL });
    const curve = chain.account(curveOf(mint))!;
    const data = Buffer.from(curve.data);
    // What the program takes from the payer.
    data.writeBigUInt64LE(70_000n, 133);
    chain.setAccount(curveOf(mint), { ...curve, lamports: curve.lamports + 70_000n, data });
    const { exitCode, last, lineOf } = await doctor("--platform", mint);
    expect(lineOf(mint)).toMatch(
      /^WRONG .* does not do as tested: the rent that is paid is 720240 lamports instead of 650240/,
    );
    expect(last).toBe("At fault: --platform");
    expect(exitCode).toBe(1);
  });

  it("says which programs no coin uses", async () => {
    await start();
    const { exitCode, platform } = await doctor("--platform");
    expect(platform.at(-1)).toMatch(
      /^check .* nothing that moves fees was simulated with LAUNCHPAD, AMM, FEES: name coins /,
    );
    expect(exitCode).toBe(0);
  });
});

describeWithRedis("npm run doctor -- --platform, with Redis", () => {
  it("notes the deployments of the programs that it has checked", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    await start();
    const mint = newMint();
    sandbox.coins.launch({ mint, creator: newMint(), fees: SOL });
    const env = { REDIS_URL: server.url };
    const { lineOf } = await doctorWith(env, "--platform", mint);
    expect(lineOf("checked: ")).toContain("checked: LAUNCHPAD; Redis keeps this for 90 days");
    await expect(server.command("HKEYS", "tributary:v2:platform-checks")).resolves.toEqual([
      "LAUNCHPAD",
    ]);
  });
});
