import { getAddressCodec, lamports, type Address } from "@solana/kit";
import { Account, LiteSVM } from "litesvm";

// LiteSVM decodes an address four times in each call, which takes half of the CPU time that a
// sandbox needs to start. Here it does so once in a process.

const codec = getAddressCodec();
const known = new Map<Address, Uint8Array>();

function bytesOf(address: Address): Uint8Array {
  const bytes = known.get(address) ?? Uint8Array.from(codec.encode(address));
  known.set(address, bytes);
  return bytes;
}

Object.assign(LiteSVM.prototype, {
  setAccount(this: LiteSVM, account: Parameters<LiteSVM["setAccount"]>[0]): void {
    const { address, lamports, data, programAddress, executable } = account;
    this["inner"].setAccount(
      bytesOf(address),
      new Account(lamports, data as Uint8Array, bytesOf(programAddress), executable, 0n),
    );
  },
  getBalance(this: LiteSVM, address: Address) {
    const balance = this["inner"].getBalance(bytesOf(address));
    return balance === null ? null : lamports(balance);
  },
  getAccount(this: LiteSVM, address: Address) {
    const account = this["inner"].getAccount(bytesOf(address));
    if (account === null) return { exists: false, address };
    const data = account.data();
    return {
      ...{ exists: true, address, data, space: BigInt(data.length) },
      executable: account.executable(),
      lamports: lamports(account.lamports()),
      programAddress: codec.decode(account.owner()),
    };
  },
});
