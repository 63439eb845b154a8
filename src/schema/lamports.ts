import { builder } from "./builder.ts";

builder.scalarType("Lamports", {
  description:
    "An exact amount in lamports (10^-9 SOL), as a string of decimal digits, because a JSON number cannot hold every amount.",
  serialize: (lamports) => lamports.toString(),
});
