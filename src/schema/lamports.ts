import { builder } from "./builder.ts";

builder.scalarType("Lamports", {
  description:
    "An exact amount in lamports (10^-9 SOL), as a string of decimal digits: amounts can be larger than a JSON number can hold exactly.",
  serialize: (lamports) => lamports.toString(),
});
