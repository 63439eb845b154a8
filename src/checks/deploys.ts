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
  readonly isDeployed: boolean;
  /** The slot of the last deployment; undefined if unknown. */
  readonly deploySlot: number | undefined;
}

/**
 * Reads programs by their ids, which are base58 addresses. Returns them in the same order. Rejects
 * with an RpcError.
 */
export async function readPrograms<Named extends { readonly id: string }>(
  { readAccounts }: Pick<Rpc, "readAccounts">,
  programs: readonly Named[],
): Promise<(Named & Program)[]> {
  const results: (Named & Program)[] = [];
  await readAccounts({
    groups: programs.map(({ id }) => [id, deriveAddress([toKeyBytes(id)], UPGRADEABLE_LOADER)]),
    bytes: PROGRAM_DATA.bytes,
    take(i, { accounts: [program, programData], slot }) {
      const deploySlot = decodeDeploySlot(programData?.data);
      const isCredible = deploySlot !== undefined && deploySlot <= slot;
      results[i] = {
        ...programs[i]!,
        isDeployed: program?.executable === true,
        deploySlot: isCredible ? deploySlot : undefined,
      };
      return true;
    },
  });
  return results;
}

function decodeDeploySlot(data: Buffer | undefined): number | undefined {
  if (!data || data.length < PROGRAM_DATA.bytes || data.readUInt32LE() !== PROGRAM_DATA.kind)
    return undefined;
  return Number(data.readBigUInt64LE(PROGRAM_DATA.slotOffset));
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
    const programs = Object.entries(LAUNCHPAD_PROGRAMS).map(([program, id]) => ({ program, id }));
    for (const { program } of programs) {
      const slot = redis && (await readPlatformCheck(redis, program));
      if (slot) checkedGauge.set({ program }, slot);
    }
    for (const { program, deploySlot: slot } of await readPrograms(rpc, programs)) {
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
