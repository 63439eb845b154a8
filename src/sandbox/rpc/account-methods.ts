import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import {
  accountFields,
  addressParam,
  readConfig,
  readFields,
  slotFor,
  toAccountJson,
  withContext,
} from "./params.ts";
import { invalidParams, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";

const MAX_ACCOUNTS = 100;

const accountConfig = z.object({ ...readFields, ...accountFields }).nullish();

/** The JSON-RPC methods that read accounts. */
export function createAccountMethods(chain: Chain): Methods {
  return {
    getAccountInfo: method(z.tuple([addressParam, accountConfig]), ([address, config]) =>
      withContext(slotFor(chain, config), toAccountJson(chain.account(address), config)),
    ),

    getMultipleAccounts: method(z.tuple([z.array(addressParam), accountConfig]), ([addresses, config]) => {
      if (addresses.length > MAX_ACCOUNTS)
        throw invalidParams(`Too many inputs provided; max ${MAX_ACCOUNTS}`);
      const accounts = addresses.map((address) => toAccountJson(chain.account(address), config));
      return withContext(slotFor(chain, config), accounts);
    }),

    getBalance: method(z.tuple([addressParam, readConfig]), ([address, config]) =>
      withContext(slotFor(chain, config), chain.balance(address)),
    ),

    getMinimumBalanceForRentExemption: method(z.tuple([z.int().nonnegative(), readConfig]), ([dataBytes]) =>
      chain.rentExemptMinimum(dataBytes),
    ),
  };
}
