import { describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";

const escrowProgramId = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
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
});
