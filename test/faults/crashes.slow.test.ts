import { expect } from "vitest";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { chain, replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { isMethod, isLook } from "../support/sandbox.ts";

const SOL = 1_000_000_000n;

const it = withReplicas({ asProcesses: true });

describeWithRedis(
  "a caller whose replica died after it had sent, and who comes back at another,",
  () => {
    let used = 0;

    /** An account that no other test uses, with these fees in its vault. */
    function newAccount(fees: bigint): SandboxAccount {
      const account = sandbox.account(`artist${String(++used).padStart(3, "0")}`);
      chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + fees);
      chain.setBalance(account.address, SOL);
      return account;
    }
    /** A coin of which these accounts have equal shares. */
    function launchShared(...accounts: readonly SandboxAccount[]): string {
      const mint = newMint();
      const shareholders = accounts.map(({ address }) => ({
        address,
        bps: 10_000 / accounts.length,
      }));
      sandbox.coins.launch({ mint, creator: STRANGER, shareholders, fees: SOL });
      return mint;
    }
    function launchOwn({ address }: SandboxAccount): string {
      const mint = newMint();
      sandbox.coins.launch({ mint, creator: address, fees: SOL });
      return mint;
    }
    const landedOf = ({ address }: SandboxAccount) =>
      sandbox
        .landedCollects()
        .filter(({ message }) => message.accountKeys.some((key) => key === address));
    const sent = () =>
      new Set(
        sandbox.rpc.calls
          .filter(isMethod("sendTransaction"))
          .map(({ params }) => params[0] as string),
      );

    /** The replica dies once its transaction has landed, before it learns so. Returns the signature. */
    async function dieAfterLanding(account: SandboxAccount, mints: readonly string[]) {
      const lift = sandbox.rpc.faults.add({ when: isLook, then: "hang" });
      const lost = replicas
        .at(0)
        .collect(account.id, {}, mints)
        .catch(() => "lost");
      await expect.poll(() => landedOf(account).length).toBe(1);
      const landed = landedOf(account)[0]!;
      await expect.poll(() => chain.slot("finalized")).toBeGreaterThanOrEqual(landed.slot);
      replicas.kill(0);
      expect(await lost).toBe("lost");
      await replicas.restart(0);
      lift();
      return landed;
    }
    /** The slot that the restarted replica's lookup requires of the node. */
    async function slotRequired({ handle, address }: SandboxAccount, mint = ""): Promise<number> {
      sandbox.rpc.calls.length = 0;
      await replicas.at(0).request(`/wallet/lookup?handle=${handle}&mint=${mint}`);
      const call: any = sandbox.rpc.calls.find(
        ({ method, params }) =>
          method === "getMultipleAccounts" && (params[0] as string[]).includes(address),
      );
      return call?.params[1].minContextSlot ?? 0;
    }
    /** The replica dies when it has signed and stored its transaction, which reaches no node. */
    async function dieBeforeLanding(account: SandboxAccount, mints: readonly string[]) {
      sandbox.rpc.calls.length = 0;
      const lift = sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
      const lost = replicas
        .at(0)
        .collect(account.id, {}, mints)
        .catch(() => "lost");
      await expect.poll(() => sent().size).toBe(1);
      replicas.kill(0);
      expect(await lost).toBe("lost");
      await replicas.restart(0);
      lift();
    }
    const comeBack = async ({ id }: SandboxAccount, mints: readonly string[]) =>
      (await replicas.at(1).collect(id, {}, mints)).body;

    it("learns that a shared coin was distributed, without naming it", async () => {
      const account = newAccount(0n);
      const mint = launchShared(account, newAccount(0n));
      const { signature: txSignature } = await dieAfterLanding(account, [mint]);
      expect(await comeBack(account, [])).toMatchObject({
        error: "NOTHING_TO_COLLECT",
        lastCollect: { collected: "0.5000", newBalance: "1.5000", txSignature },
      });
      expect(landedOf(account)).toHaveLength(1);
    });

    it("makes the restarted replica show no older balance of what was collected", async () => {
      const account = newAccount(SOL);
      const { slot } = await dieAfterLanding(account, []);
      expect(await comeBack(account, [])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
      await expect.poll(() => slotRequired(account)).toBeGreaterThanOrEqual(slot);
    });

    it("makes it show no older balance of a shared coin to another shareholder", async () => {
      const [account, other] = [newAccount(0n), newAccount(0n)];
      const mint = launchShared(account, other);
      const { slot } = await dieAfterLanding(account, [mint]);
      expect(await comeBack(account, [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
      await expect.poll(() => slotRequired(other, mint)).toBeGreaterThanOrEqual(slot);
    });

    it.each([
      ["of the account's own coin", (account: SandboxAccount) => launchOwn(account)],
      ["of a shared coin", (account: SandboxAccount) => launchShared(account, newAccount(0n))],
    ])("gets the same transaction %s, if it had reached no node", async (_, launch) => {
      const account = newAccount(0n);
      const mint = launch(account);
      await dieBeforeLanding(account, [mint]);
      expect(await comeBack(account, [mint])).toMatchObject({ success: true });
      expect(sent().size).toBe(1);
      expect(landedOf(account)).toHaveLength(1);
    });

    it("is no obstacle to another shareholder, whose collect finds the distribution", async () => {
      const [account, other] = [newAccount(0n), newAccount(SOL)];
      const mint = launchShared(account, other);
      await dieAfterLanding(account, [mint]);
      expect(await comeBack(other, [mint])).toMatchObject({ success: true, collected: "1.0000" });
      expect(chain.balance(other.address)).toBe(2n * SOL + SOL / 2n);
    });
  },
);
