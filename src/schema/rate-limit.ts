import type { RateLimitState } from "../resolvers/request-scope.ts";
import { builder } from "./builder.ts";

const RateLimitType = builder.objectRef<RateLimitState>("RateLimit").implement({
  description: "The caller's rate limit, in requests. REST and GraphQL share it.",
  fields: (t) => ({
    limit: t.exposeInt("limit", { description: "The most in any window." }),
    cost: t.exposeInt("cost", { description: "What this operation counts as." }),
    remaining: t.exposeInt("remaining", {
      description: "What would pass now, after this operation.",
    }),
    resetSeconds: t.exposeInt("resetSeconds", {
      description: "When `remaining` grows, in seconds.",
    }),
  }),
});

builder.queryField("rateLimit", (t) =>
  t.field({
    type: RateLimitType,
    nullable: true,
    description:
      "What this operation costs and what is left, as in the response's headers. Null for callers without a limit.",
    resolve: (_root, _args, { scope }) => scope.rateLimit,
  }),
);
