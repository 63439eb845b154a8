import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ContractError } from "../../../src/contract/contract-error.ts";
import { createSharedReads } from "../../../src/chain/history/shared-reads.ts";

const reader = (signal = new AbortController().signal) => ({ signal, addressBlock: "192.0.2.0/24" });

/** Reads that stay in flight until the test ends them. */
function createHeldReads(options: { joinsInFlight: boolean }) {
  const share = createSharedReads<string>(options);
  const inFlight: PromiseWithResolvers<string>[] = [];
  const read = () => {
    inFlight.push(Promise.withResolvers());
    return inFlight.at(-1)!.promise;
  };
  return { inFlight, load: (key: string, signal?: AbortSignal) => share(key, read, reader(signal)) };
}

describe.each([true, false])("reads of one key (joinsInFlight: %s)", (joinsInFlight) => {
  it("share one call until it is sent, and after that only with joinsInFlight", async () => {
    const { load, inFlight } = createHeldReads({ joinsInFlight });
    const readers = [load("key"), load("key")];
    await setImmediate();
    expect(inFlight).toHaveLength(1);
    readers.push(load("key"));
    await setImmediate();
    expect(inFlight).toHaveLength(joinsInFlight ? 1 : 2);
    for (const { resolve } of inFlight) resolve("value");
    expect(await Promise.all(readers)).toEqual(["value", "value", "value"]);

    void load("key");
    await setImmediate();
    expect(inFlight).toHaveLength(joinsInFlight ? 2 : 3);
  });

  it("go on for the others when a reader leaves, and are not sent when all have left", async () => {
    const { load, inFlight } = createHeldReads({ joinsInFlight });
    const leaving = new AbortController();
    const left = [load("shared", leaving.signal), load("dropped", leaving.signal)];
    const stays = load("shared");
    leaving.abort(new Error("left"));
    for (const one of left) await expect(one).rejects.toThrow("left");
    await setImmediate();
    expect(inFlight).toHaveLength(1);
    inFlight[0]!.resolve("value");
    expect(await stays).toBe("value");
  });

  it("start again when all readers of the one in flight have left", async () => {
    const { load, inFlight } = createHeldReads({ joinsInFlight });
    const leaving = new AbortController();
    const left = load("key", leaving.signal);
    await setImmediate();
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    void load("key");
    await setImmediate();
    expect(inFlight).toHaveLength(2);
  });
});

it("eight reads are in flight and a thousand wait; more are refused as SERVICE_BUSY", async () => {
  const { load, inFlight } = createHeldReads({ joinsInFlight: true });
  const codes: string[] = [];
  for (let i = 0; i < 1_010; i++)
    load(`key${i}`).catch((error: unknown) => codes.push((error as ContractError).code));
  await setImmediate();
  expect(inFlight).toHaveLength(8);
  await setImmediate();
  expect(codes).toEqual(["SERVICE_BUSY", "SERVICE_BUSY"]);
});
