import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import { createCoins } from "../chain/coins.ts";
import { addAmmCreatorFees, addCreatorFees } from "../chain/creator-fees.ts";
import { invalidParams, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import { addressParam, lamportsParam } from "./params.ts";

/**
 * The one method that only the sandbox has: it stands in for trading, which earns creators their
 * fees.
 */
export function createCreatorFeeMethods(chain: Chain): Methods {
  const coins = createCoins(chain);
  return {
    /**
     * `[creator, lamports]` pays into the creator's vault, `[creator, lamports, "amm"]` into the
     * AMM's. `[creator, amount, mint]` adds fees to that coin of the creator: on the curve or, if
     * the coin has migrated, in the pool. `amount` is in the smallest unit of the coin's currency.
     */
    sandboxAddCreatorFees: method(
      z.tuple([addressParam, lamportsParam, z.union([z.literal("amm"), addressParam]).nullish()]),
      ([creator, lamports, place]) => {
        const amount = BigInt(lamports);
        if (!place) return addCreatorFees(chain, creator, amount);
        if (place === "amm") return addAmmCreatorFees(chain, creator, amount);
        if (coins.creatorOf(place) !== creator)
          throw invalidParams(`${creator} has no coin ${place}`);
        return coins.addFees(place, amount);
      },
    ),
  };
}
