import type { AddressesOf } from "../chain/addresses.ts";
import type { Collector } from "../chain/collect/collector.ts";
import type { Balances } from "../chain/balances.ts";
import type { Directory } from "../social/account-lookup.ts";
import type { Caller } from "./request-scope.ts";
import { Loaders } from "./loaders.ts";
import type { HandleFormat } from "./look-up-wallet.ts";

/** What resolvers work with, the same for every request. */
export interface Services {
  readonly handleFormat: HandleFormat;
  readonly directory: Directory;
  readonly addressesOf: AddressesOf;
  readonly vaults: Balances;
  readonly collector: Collector;
}

/** GraphQL's context: the services, who asks, and this request's loaders. */
export interface RequestContext extends Services {
  readonly caller: Caller;
  /** In `performance.now()`: all that the request does together has its time from here. */
  readonly startedAt: number;
  readonly loaders: Loaders;
}

/** The context of one request of `caller`. */
export function createRequestContext(services: Services, caller: Caller): RequestContext {
  return { ...services, caller, startedAt: performance.now(), loaders: new Loaders(services, caller) };
}
