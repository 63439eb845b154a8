import { randomUUID } from "node:crypto";
import type { Logger } from "../log.ts";
import type { GraphQLCall } from "../schema/yoga.ts";
import type { Origin } from "./client-address.ts";
import type { RateLimit } from "./rate-limit.ts";

/** What calls need of the process. */
export interface CallNeeds {
  readonly clientAddress: (origin: Origin) => string;
  readonly rateLimit: RateLimit;
  readonly log: Logger;
}

/** The API is public and knows no credentials, so any page may call it and read what it answers. */
const CORS_HEADERS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};

/** What there is of a request beside the request itself: its id, its caller's budget, its log. */
export class Call implements GraphQLCall {
  /** What its answer says, whatever comes of it. */
  readonly headers: Record<string, string>;
  readonly #needs: CallNeeds;
  readonly #origin: Origin;
  #caller: string | undefined;
  #takenAt: number | undefined;
  #log: Logger | undefined;

  constructor(needs: CallNeeds, origin: Origin) {
    this.#needs = needs;
    this.#origin = origin;
    this.headers = { ...CORS_HEADERS, "x-request-id": randomUUID() };
  }

  /** Names the request in each line. */
  get log(): Logger {
    return (this.#log ??= this.#needs.log.child({ requestId: this.headers["x-request-id"] }));
  }

  async admit(cost: number): Promise<void> {
    this.#caller ??= this.#needs.clientAddress(this.#origin);
    const { at, policy, standing, refusal } = await this.#needs.rateLimit(this.#caller, cost, this.#takenAt);
    this.#takenAt = at;
    this.headers["ratelimit-policy"] = policy;
    this.headers.ratelimit = standing;
    if (refusal) throw refusal;
  }
}
