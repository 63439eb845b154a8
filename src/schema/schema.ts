import { builder } from "./builder.ts";
import "./collect-result.ts";
import "./error-code.ts";
import "./lamports.ts";
import "./wallet.ts";

builder.queryType({
  description: "Read operations. A query costs one request of the rate limit, whatever it selects.",
});
builder.mutationType({
  description:
    "Operations that spend the service's money. Each account to collect costs one request of the rate limit.",
});

export const schema = builder.toSchema({ sortSchema: false });
