import type { Derivation } from "../chain/launchpad/account-addresses.ts";
import { builder } from "./builder.ts";

export const DerivationType = builder.objectRef<Derivation>("Derivation").implement({
  description:
    "How an address is derived: it is the program-derived address of these seeds. Derive it yourself before you launch a token, with a `program` and a first seed that you have stored: they are the same for all accounts, and never change.",
  fields: (t) => ({
    program: t.exposeString("program", {
      description: "The program to which the address belongs, in base58.",
    }),
    seeds: t.exposeStringList("seeds", {
      description: "The seeds in order, as text in UTF-8. The second one is `socialId`.",
    }),
    bump: t.exposeInt("bump", {
      description: "The last seed, a byte: the highest that gives an address off the curve.",
    }),
  }),
});
