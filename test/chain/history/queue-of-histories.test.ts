import { setImmediate } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { expect, it } from "vitest";
import { createHistory } from "../../../src/chain/history/history.ts";
import type { Rpc } from "../../../src/chain/rpc/rpc-client.ts";
import type { ContractError } from "../../../src/contract/contract-error.ts";
import { createBudgetMetrics } from "../../../src/fairness/budget-metrics.ts";

it("eight lists are in flight and a thousand wait, though all readers want the same; more are SERVICE_BUSY", async () => {
  let inFlight = 0;
  const listTransactions = () => {
    inFlight++;
    return new Promise<Awaited<ReturnType<Rpc["listTransactions"]>>>(() => undefined);
  };
  const { readPage } = createHistory({
    rpc: {
      listTransactions,
      readAccounts: () => Promise.resolve(),
      readTransaction: () => Promise.resolve(undefined),
    },
    floors: { landedSlotOf: () => 0 },
    historyCallsPerHour: 1e6,
    redis: undefined,
    metrics: createBudgetMetrics(new Registry()),
  });
  const account = {
    address: "a",
    creatorVault: "b",
    vaultTokens: "c",
    ammVaultAuthority: "d",
    ammVault: "e",
  };
  const codes: string[] = [];
  for (let i = 0; i < 1_010; i++) {
    const reader = { signal: new AbortController().signal, addressBlock: `192.0.${i}.0/24` };
    readPage(account, { first: 1, after: undefined }, reader).catch((error: unknown) =>
      codes.push((error as ContractError).code),
    );
  }
  await setImmediate();
  await expect.poll(() => inFlight).toBe(8);
  expect(codes).toEqual(["SERVICE_BUSY", "SERVICE_BUSY"]);
});
