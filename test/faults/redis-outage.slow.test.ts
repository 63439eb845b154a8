import { beforeEach, describe, expect } from "vitest";
import { chain, replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { hold, isMethod, isLook } from "../support/sandbox.ts";

/** Long enough for a busy machine, and short enough to wait for while Redis is frozen. */
const REDIS_ANSWER_TIMEOUT_MS = 2_000;

const it = withReplicas({ redisAnswerTimeoutMs: REDIS_ANSWER_TIMEOUT_MS });

describe("a Redis outage", () => {
  let accounts = 0;
  /** An account that no other test uses, with 3.1 SOL to collect and 5.2 SOL at its address. */
  function newAccount() {
    const account = sandbox.account(`artist${200 - accounts++}`);
    chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + 3_100_000_000n);
    chain.setBalance(account.address, 5_200_000_000n);
    return account;
  }
  const addFees = (vault: string, lamports: bigint) => {
    chain.setBalance(vault, chain.balance(vault) + lamports);
  };

  describe("makes each replica independent:", () => {
    beforeEach(async () => {
      await replicas.redis.stop();
      await replicas.redisIsAway();
      return async () => {
        await replicas.redis.start();
        await replicas.redisIsBack();
      };
    });

    it("concurrent collects of one account at both move its fees once, and waste one fee", async () => {
      const { id, handle, address } = newAccount();
      sandbox.rpc.calls.length = 0;
      const isBlockhash = isMethod("getLatestBlockhash");
      let isHeld = false;
      // The first replica's request is held until the second has collected.
      const release = hold(sandbox.rpc, (call) => isBlockhash(call) && !isHeld && (isHeld = true));
      const slow = replicas.at(0).collect(id);
      await expect.poll(() => sandbox.rpc.calls.some(isBlockhash)).toBe(true);
      expect((await replicas.at(1).collect(id)).body).toMatchObject({ collected: "3.1000" });
      release();
      expect((await slow).body).toMatchObject({ error: "NOTHING_TO_COLLECT", collected: "0.0000" });
      expect(chain.balance(address)).toBe(8_300_000_000n);
      expect(sandbox.landedCollectsOf(handle)).toHaveLength(2);
    });
  });

  describe("after a collect has acquired its lock", () => {
    /** Starts a collect that is confirmed only after `lift` is called. */
    async function startCollect() {
      const account = newAccount();
      const lift = sandbox.rpc.faults.add({
        when: isLook,
        then: "reset",
      });
      const collect = replicas.at(0).collect(account.id);
      await expect.poll(() => sandbox.landedCollectsOf(account.handle)).toHaveLength(1);
      expect(
        await replicas.redis.command("KEYS", `tributary:v3:claim:*:${account.address}}`),
      ).toHaveLength(1);
      return { ...account, collect, lift };
    }

    it("that prevents its release does not make a replica report the collect twice", async () => {
      const { id, creatorVault, collect, lift } = await startCollect();
      await replicas.redis.command("CONFIG", "SET", "maxmemory", 1);
      lift();
      expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
      for (const replica of [1, 0, 1]) {
        addFees(creatorVault, 500_000_000n);
        expect((await replicas.at(replica).collect(id)).body.collected).toBe("0.5000");
      }
      await replicas.redis.command("CONFIG", "SET", "maxmemory", 0);
      await replicas.redisIsBack();
      expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    });
  });
});
