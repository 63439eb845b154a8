import { afterEach, expect, it } from "vitest";
import { atOnce } from "../support/client.ts";
import {
  OTHER_CLUSTER,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let second: LyingEndpoint;
afterEach(async () => {
  second.stopLying();
  world.sandbox.rpc.faults.clear();
  await world.close();
  await second.close();
});

/** A gateway with two endpoints; the first is the sandbox's own. */
const start = async (env: Record<string, string> = {}) => {
  world = await startWorld(async (sandbox) => {
    second = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: `${sandbox.rpc.url},${second.url}`, ...env };
  });
};
const hostOf = ({ url }: { url: string }) => new URL(url).host;
const errorsAbout = (host: string) =>
  world.logLines.filter((line) => line.includes('"level":50') && line.includes(`"host":"${host}"`));

it("a fallback on another cluster is not used when the first endpoint fails, not even as the last resort", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");

  const lift = world.sandbox.rpc.faults.add({ then: "reset" });
  expect((await world.lookup("artist001")).body.error).toBe("LOOKUP_FAILED");
  expect((await world.collect(world.account("creator").id)).body.error).toBe("COLLECT_FAILED");
  lift();
  expect((await world.lookup("artist001")).body.balance.vault).not.toBe("0.0000");
  expect(new Set(second.calls.map(({ method }) => method))).toEqual(new Set(["getGenesisHash"]));
});

it("a transaction is not sent to an endpoint on another cluster", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  expect((await world.collect(world.account("creator").id)).body).toMatchObject({
    collected: "3.1000",
  });
  expect(world.sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
  expect(second.calls.some(isMethod("sendTransaction"))).toBe(false);
});

it("an endpoint on another cluster is logged as an error once, with its host only", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  for (let i = 0; i < 3; i++) await world.collect(world.account(`artist00${i + 1}`).id);
  expect(errorsAbout(hostOf(second))).toEqual([expect.stringContaining("is on another cluster")]);
  expect(errorsAbout(hostOf(world.sandbox.rpc))).toEqual([]);
});

it("an endpoint that comes back on another cluster is not used, and is used again once it is right", async () => {
  await start();
  const { rpc } = world.sandbox;
  await atOnce(2, () => world.lookup("creator"));
  // Both endpoints have shown the same cluster.
  rpc.faults.add({ times: 1, then: "reset" });
  expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");

  const noAccounts = { context: { slot: 1 }, value: [null, null, null, null] };
  rpc.faults.add({ when: isMethod("getGenesisHash"), then: rpcResult("another") });
  rpc.faults.add({ when: isMethod("getMultipleAccounts"), then: rpcResult(noAccounts) });
  const wasChecked = () => errorsAbout(hostOf(rpc)).length;
  await expect
    .poll(async () => {
      expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
      return wasChecked();
    })
    .toBe(1);
  expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");

  rpc.faults.clear();
  world.forgetCalls();
  await expect
    .poll(async () => {
      expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
      return rpc.calls.some(isMethod("getMultipleAccounts"));
    })
    .toBe(true);
});

it("concurrent lookups share one check of each endpoint", async () => {
  await start();
  const checks = (rpc: { calls: { method: string }[] }) =>
    rpc.calls.filter(isMethod("getGenesisHash")).length;
  const handles = world.sandbox.accounts.filter(({ suspended }) => !suspended).slice(0, 100);
  const answers = await atOnce(100, (i) => world.lookup(handles[i]!.handle));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(checks(world.sandbox.rpc)).toBe(1);
  // No lookup asks it. If they take two seconds, as on a slow machine, it is asked for its state in
  // the background.
  expect(checks(second)).toBeLessThanOrEqual(1);
});

it("the start reports each endpoint, with its cluster", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  await world.gateway.start();
  const log = world.logLines.join("");
  expect(log).toContain(`SOLANA_RPC_URL: ${hostOf(world.sandbox.rpc)} is on a private cluster`);
  expect(log).toContain(`SOLANA_RPC_URL: ${hostOf(second)} is on devnet`);
  expect(errorsAbout(hostOf(second))).toHaveLength(1);
});

it("the start reports an endpoint that does not answer", async () => {
  await start();
  second.faults.add({ then: "reset" });
  await world.gateway.start();
  expect(world.logLines.join("")).toMatch(
    new RegExp(
      `"level":40[^\n]*SOLANA_RPC_URL: ${hostOf(second)} does not answer \\(unreachable\\)`,
    ),
  );
});
