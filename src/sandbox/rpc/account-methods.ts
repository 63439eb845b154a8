import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import { accountEncoding, dataSlice, toAccountJson } from "./account-json.ts";
import { invalidParams, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import {
  addressParam,
  configParam,
  configFields,
  lamportsParam,
  slotFor,
  withContext,
} from "./params.ts";

const MAX_ACCOUNTS = 100;

const accountConfig = z.object({ ...configFields, encoding: accountEncoding, dataSlice });

/** The JSON-RPC methods that read accounts. */
export function createAccountMethods(chain: Chain): Methods {
  return {
    getAccountInfo: method(z.tuple([addressParam, accountConfig]), ([address, config]) =>
      withContext(slotFor(chain, config), toAccountJson(chain.account(address), config.dataSlice)),
    ),

    getMultipleAccounts: method(
      z.tuple([z.array(addressParam), accountConfig]),
      ([addresses, config]) => {
        if (addresses.length > MAX_ACCOUNTS)
          throw invalidParams(`Too many inputs provided; max ${MAX_ACCOUNTS}`);
        const accounts = addresses.map((address) =>
          toAccountJson(chain.account(address), config.dataSlice),
        );
        return withContext(slotFor(chain, config), accounts);
      },
    ),

    // The Solana CLI, which funds and rotates keys, needs the following methods.
    getBalance: method(z.tuple([addressParam, configParam]), ([address, config]) =>
      withContext(slotFor(chain, config), Number(chain.balance(address))),
    ),

    requestAirdrop: method(
      z.tuple([addressParam, lamportsParam, configParam]),
      ([address, lamports]) => chain.transfer(address, BigInt(lamports)),
    ),

    getMinimumBalanceForRentExemption: method(
      z.tuple([z.int().nonnegative(), configParam]),
      ([dataBytes]) => chain.rentExemptMinimum(dataBytes),
    ),
  };
}
