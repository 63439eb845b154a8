import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Claims } from "../../src/chain/collect/claims.ts";

/** Takes a claim once no other replica must sign first. */
export async function takeClaim({ take }: Claims, address: string): Promise<Claim> {
  const token = randomUUID();
  let claim = await take(address, token);
  while ("holder" in claim) {
    await sleep(100);
    claim = await take(address, token, claim.holder);
  }
  return claim;
}
