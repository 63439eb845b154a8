import { expect, it } from "vitest";
import { createAccountLocks } from "../../../src/chain/collect/locks/account-lock.ts";
import { createDistributionLocks } from "../../../src/chain/collect/locks/distribution-locks.ts";

it("A collect that waits for another one of its process names that as the reason at its deadline", async () => {
  const locks = createDistributionLocks(createAccountLocks({ feePayer: "payer", redis: undefined }));
  const lease = await locks.acquire("config", Infinity);
  await expect(locks.acquire("config", performance.now())).rejects.toMatchObject({
    failure: { kind: "distribution-in-flight" },
    message: "another account's collect distributed the coin's shared fees until the collect's deadline",
  });
  lease.release();
  expect((await locks.acquire("config", Infinity)).openTransaction).toBeUndefined();
});
