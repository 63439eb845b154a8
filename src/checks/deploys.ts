import { Gauge, type Registry } from "@prometheus-io/client";
import type { Logger } from "../observability/log.ts";
import type { Redis } from "../store/redis.ts";
import { deriveAddress, toKeyBytes } from "../chain/primitives/derive-address.ts";
import { readPlatformCheck } from "./platform-checks.ts";
import { LAUNCHPAD_PROGRAMS } from "../chain/launchpad/program-ids.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";

const UPGRADEABLE_LOADER = "BPFLoaderUpgradeab1e11111111111111111111111";
/**
 * The beginning of a program's ProgramData account: its kind (u32), and the slot of the last
 * deployment (u64). Source: `UpgradeableLoaderState` of the crate solana-loader-v3-interface.
 */
const PROGRAM_DATA = { kind: 3, slotOffset: 4, bytes: 12 };

const PERIOD_MS = 600_000;

export interface Program {
  readonly name: string;
  /** In base58. */
  readonly id: string;
  readonly isDeployed: boolean;
  /** The slot of the last deployment; undefined if unknown. */
  readonly deploySlot: number | undefined;
}

/**
 * Reads programs, whose ids are given by name. Returns them in the same order. Rejects with an
 * RpcError.
 */
export async function readPrograms(
  { readAccounts }: Pick<Rpc, "readAccounts">,
  ids: Readonly<Record<string, string>>,
): Promise<Program[]> {
  const results: Program[] = [];
  const entries = Object.entries(ids);
  await readAccounts({
    groups: entries.map(([, id]) => [id, deriveAddress([toKeyBytes(id)], UPGRADEABLE_LOADER)]),
    bytes: PROGRAM_DATA.bytes,
    take(i, { accounts: [program, programData], slot }) {
      const [name, id] = entries[i]!;
      results[i] = {
        name,
        id,
        isDeployed: program?.executable === true,
        deploySlot: decodeDeploySlot(programData?.data, slot),
      };
      return true;
    },
  });
  return results;
}

/** Undefined if the data is no ProgramData's, or has a slot after that of the read. */
function decodeDeploySlot(data: Buffer | undefined, readSlot: number): number | undefined {
  if (!data || data.length < PROGRAM_DATA.bytes || data.readUInt32LE() !== PROGRAM_DATA.kind)
    return undefined;
  const slot = Number(data.readBigUInt64LE(PROGRAM_DATA.slotOffset));
  return slot <= readSlot ? slot : undefined;
}

/**
 * Watches for new deployments of the launch platform's programs: deployments are frequent, and may
 * break collects.
 */
export function createDeployWatch(needs: {
  rpc: Pick<Rpc, "readAccounts">;
  /** Absent: no checks are known. */
  redis?: Redis | undefined;
  registry: Registry;
  log: Logger;
}) {
  const { rpc, redis, log } = needs;
  const slots = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const gauge = new Gauge({
    name: "tributary_launchpad_deploy_slot",
    help: "The slot in which a program of the launch platform (LAUNCHPAD, AMM or FEES) was last deployed; absent until it is read.",
    labelNames: ["program"],
    registers: [needs.registry],
  });
  const checkedGauge = new Gauge({
    name: "tributary_launchpad_checked_slot",
    help: "The deployment (its slot) of a program of the launch platform that npm run doctor -- --platform has last checked; absent without Redis, or without a check.",
    labelNames: ["program"],
    registers: [needs.registry],
  });

  async function read(): Promise<void> {
    for (const program of Object.keys(LAUNCHPAD_PROGRAMS)) {
      const slot = redis && (await readPlatformCheck(redis, program));
      if (slot) checkedGauge.set({ program }, slot);
    }
    const programs = await readPrograms(rpc, LAUNCHPAD_PROGRAMS);
    for (const { name: program, deploySlot: slot } of programs) {
      const before = slots.get(program);
      // Deployments are never undone: a lower slot comes from a node that is behind.
      if (slot === undefined || slot <= (before ?? -1)) continue;
      slots.set(program, slot);
      gauge.set({ program }, slot);
      if (before !== undefined)
        log.warn(
          { program, slot, before },
          "the launch platform has deployed a program again: run npm run doctor -- --platform, as docs/operating.md says under LaunchpadRedeployed",
        );
    }
  }
  /** A failed read is not logged: other callers report that the chain does not answer. */
  const tryToRead = () => void read().catch(() => undefined);

  return {
    start(): void {
      tryToRead();
      timer = setInterval(tryToRead, PERIOD_MS).unref();
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}
