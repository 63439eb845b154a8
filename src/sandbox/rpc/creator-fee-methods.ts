import { z } from "zod";
import type { Chain } from "../chain/chain.ts";
import { addAmmCreatorFees, addCreatorFees } from "../chain/creator-fees.ts";
import type { LaunchpadPrograms } from "../chain/creator-fees.ts";
import { method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import { addressParam, lamportsParam } from "./params.ts";

/** The one method that only the sandbox has: it stands in for trading, which earns creators their fees. */
export function createCreatorFeeMethods(chain: Chain, launchpad: LaunchpadPrograms): Methods {
  return {
    /** `[creator, lamports]` pays into the creator's vault, `[creator, lamports, "amm"]` into the AMM's. */
    sandboxAddCreatorFees: method(
      z.tuple([addressParam, lamportsParam, z.literal("amm").nullish()]),
      ([creator, lamports, amm]) => {
        const add = amm ? addAmmCreatorFees : addCreatorFees;
        return add(chain, launchpad, creator, BigInt(lamports));
      },
    ),
  };
}
