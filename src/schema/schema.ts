import { builder } from "./builder.ts";
import "./collect-result.ts";
import "./error-code.ts";
import "./lamports.ts";
import "./wallet.ts";

builder.queryType({
  description: "Reads. A query costs one request of the caller's budget, however much it asks for.",
});
builder.mutationType({
  description: "What spends the service's money. Each field costs one request of the caller's budget.",
});

export const schema = builder.toSchema({ sortSchema: false });
