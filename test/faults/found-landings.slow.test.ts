import { expect } from "vitest";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { isMethod, type TestSandbox, isLook } from "../support/sandbox.ts";

type Call = TestSandbox["rpc"]["calls"][number] & { readonly params: readonly any[] };

const SOL = 1_000_000_000n;

const it = withReplicas({ asProcesses: true });

describeWithRedis(
  "a transaction that landed when its replica had died, once another finds it,",
  () => {
    const readsBalanceOf = (address: string) => (call: Call) =>
      isMethod("getMultipleAccounts")(call) && call.params[0].includes(address);
    /** The slot that the first replica's lookup requires of the node. */
    async function slotRequired({ handle, address }: SandboxAccount, mint?: string) {
      sandbox.rpc.calls.length = 0;
      const query = mint ? `&mint=${mint}` : "";
      await replicas.at(0).request(`/wallet/lookup?handle=${handle}${query}`);
      const call = sandbox.rpc.calls.find(readsBalanceOf(address));
      return (call as Call | undefined)?.params[1].minContextSlot ?? 0;
    }

    /**
     * The first replica sends a transaction, which lands; is killed before it learns so; and is
     * started again. Returns the transaction.
     */
    async function leaveLanded(
      { id, handle, address }: SandboxAccount,
      mints: readonly string[] = [],
    ) {
      const lift = sandbox.rpc.faults.add({ when: isLook, then: "hang" });
      const lost = replicas
        .at(0)
        .collect(id, {}, mints)
        .catch(() => "lost");
      const landed = () =>
        sandbox
          .landedCollects()
          .filter(({ message }) => message.staticAccounts.some((key) => key === address));
      await expect.poll(() => landed().length, { message: handle }).toBe(1);
      await expect
        .poll(() => sandbox.chain.slot("finalized"))
        .toBeGreaterThanOrEqual(landed()[0]!.slot);
      replicas.kill(0);
      expect(await lost).toBe("lost");
      await replicas.restart(0);
      lift();
      return landed()[0]!;
    }

    it("is announced: the restarted replica shows no older balance of the account", async () => {
      const account = sandbox.account("creator");
      const { slot, signature } = await leaveLanded(account);
      expect((await replicas.at(1).collect(account.id)).body).toMatchObject({
        error: "NOTHING_TO_COLLECT",
        lastCollect: { txSignature: signature },
      });
      await expect
        .poll(() => slotRequired(account), { timeout: 60_000 })
        .toBeGreaterThanOrEqual(slot);
    });

    it("is announced: the restarted replica shows no older balance of the coin to another shareholder", async () => {
      const [one, other] = [sandbox.account("artist001"), sandbox.account("artist002")];
      for (const { creatorVault, address } of [one, other]) {
        sandbox.chain.setBalance(creatorVault, 0n);
        sandbox.chain.setBalance(address, SOL);
      }
      const mint = newMint();
      const shareholders = [one, other].map(({ address }) => ({ address, bps: 5_000 }));
      sandbox.coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees: SOL });
      const { slot } = await leaveLanded(one, [mint]);
      expect((await replicas.at(1).collect(one.id, {}, [mint])).body).toMatchObject({
        error: "NOTHING_TO_COLLECT",
      });
      await expect
        .poll(() => slotRequired(other, mint), { timeout: 60_000 })
        .toBeGreaterThanOrEqual(slot);
    });
  },
);
