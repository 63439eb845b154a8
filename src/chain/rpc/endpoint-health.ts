import type { Logger } from "../../observability/log.ts";
import type { Tip } from "../slots/tip.ts";
import type { ClusterCheck } from "./cluster-check.ts";
import type { Endpoint } from "./rpc-endpoint.ts";
import { isOfSlot, isRetryable } from "./rpc-error.ts";

/** What is known of an endpoint's failures. */
export interface Health {
  readonly endpoint: Endpoint;
  failuresInARow: number;
  /** A `performance.now()` time; until then the other endpoints are tried first. */
  backsOffUntil: number;
  /** Whether it is being asked for its slot. */
  isProbed: boolean;
}

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;

/**
 * Decides in which order endpoints are tried: those that are current, in order of preference; then those whose slot is
 * behind the others', or ahead without support; last, those that back off. An endpoint that fails, rate limits or is slow
 * backs off for half a second at first and twice as long after each further failure, up to half a minute; a success
 * resets this.
 */
export function createEndpointHealth(needs: {
  endpoints: readonly Endpoint[];
  clusters: Pick<ClusterCheck, "forget">;
  slots: Pick<Tip, "isCurrent">;
  log: Logger;
}) {
  const { clusters, slots, log } = needs;
  const all: Health[] = needs.endpoints.map((endpoint) => ({
    endpoint,
    failuresInARow: 0,
    backsOffUntil: 0,
    isProbed: false,
  }));

  const backsOff = ({ backsOffUntil }: Health) => backsOffUntil > performance.now();
  const rank = (health: Health) => (backsOff(health) ? 2 : slots.isCurrent(health.endpoint) ? 0 : 1);

  function backOff(health: Health, cause: unknown): void {
    const { host } = health.endpoint;
    clusters.forget(health.endpoint);
    // Calls that fail at the same moment count as one failure.
    if (backsOff(health)) return;
    if (health.failuresInARow === 0 && all.length > 1)
      log.warn(
        { host, err: cause },
        "a chain endpoint fails: the others are tried first; if this lasts, check its status and its plan's limits",
      );
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** health.failuresInARow, MAX_BACKOFF_MS);
    health.failuresInARow++;
    health.backsOffUntil = performance.now() + backoffMs;
  }

  return {
    all: all as readonly Health[],
    inOrder: (): Health[] => all.toSorted((a, b) => rank(a) - rank(b)),
    backsOff,
    backOff,

    /** Takes the error of a call. One for another slot says nothing about the endpoint's health. */
    failed(health: Health, reason: unknown): void {
      if (isRetryable(reason) && !isOfSlot(reason)) backOff(health, reason);
    },

    /** Takes the success of a call. */
    recover(health: Health): void {
      if (health.failuresInARow > 0) log.info({ host: health.endpoint.host }, "a chain endpoint works again");
      health.failuresInARow = 0;
      health.backsOffUntil = 0;
    },
  };
}
