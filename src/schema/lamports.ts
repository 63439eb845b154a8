import { builder } from "./builder.ts";

builder.scalarType("Lamports", {
  description:
    "An exact amount in lamports (10^-9 SOL), as a string of decimal digits, because JSON numbers lose digits above 2^53.",
  serialize: (lamports) => lamports.toString(),
});
