import DataLoader from "dataloader";
import type { AccountAddresses } from "../chain/addresses.ts";
import type { Balance } from "../chain/balances.ts";
import type { SocialAccount } from "../social/account.ts";
import type { Caller } from "./request-scope.ts";
import type { Services } from "./context.ts";

/**
 * One request's loaders: whatever its fields ask for twice is read once, and all that they ask for in the
 * same moment reaches the batchers of the process together. A caller who goes away gives up its places
 * there. Each loader is made when it is first needed.
 */
export class Loaders {
  readonly #services: Services;
  readonly #caller: Caller;
  #accountByHandle: DataLoader<string, SocialAccount> | undefined;
  #accountById: DataLoader<string, SocialAccount> | undefined;
  #balance: DataLoader<AccountAddresses, Balance, string> | undefined;

  constructor(services: Services, caller: Caller) {
    this.#services = services;
    this.#caller = caller;
  }

  get accountByHandle(): DataLoader<string, SocialAccount> {
    return (this.#accountByHandle ??= new DataLoader(
      (handles) => this.#services.directory.findByHandles(handles, this.#caller.signal),
      { cacheKeyFn: (handle) => handle.toLowerCase() },
    ));
  }

  get accountById(): DataLoader<string, SocialAccount> {
    return (this.#accountById ??= new DataLoader((ids) =>
      this.#services.directory.findByIds(ids, this.#caller.signal),
    ));
  }

  get balance(): DataLoader<AccountAddresses, Balance, string> {
    return (this.#balance ??= new DataLoader(
      (accounts) => this.#services.vaults.getBalances(accounts, this.#caller.signal),
      { cacheKeyFn: ({ address }) => address },
    ));
  }
}
