import { describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";

const escrowProgramId = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const launchpadProgramId = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const escrow = { escrowProgramId, escrowSeed: "social" };

describe("addresses", () => {
  it("stay the same in every version, because existing tokens pay to them", () => {
    expect(createAddresses(escrow)("12345")).toMatchObject({
      address: "71rXrfEcvWAKaf73b3CpuLvqc2pSNojePrxUq7R8jxuX",
      creatorVault: "BNwS4hmmJcNTm3fFr2uCfLkiGD6N29k8UPKVMYEWADbS",
      ammVaultAuthority: "QfVPhMS67a6atbhr64ZJoHe2djHxmTvMBn7RGJjYjnH",
      ammVault: "EG1Z3NX1EcZZWzawTrXh3JnHpHfA8eLaVu3DNs5bS9AM",
    });
  });

  it("are different for each id, seed and program", () => {
    const addresses = [
      createAddresses(escrow)("1"),
      createAddresses(escrow)("11"),
      createAddresses({ ...escrow, escrowSeed: "other" })("1"),
      createAddresses({ ...escrow, escrowProgramId: launchpadProgramId })("1"),
    ];
    expect(new Set(addresses.map(({ address }) => address)).size).toBe(4);
    expect(new Set(addresses.map(({ creatorVault }) => creatorVault)).size).toBe(4);
  });
});
