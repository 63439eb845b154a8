import { Gauge, Histogram, type Registry } from "@prometheus-io/client";

/** The metrics of one batcher. */
export interface BatchMetrics {
  /** Counts a batch of `keys` keys. */
  sent(keys: number): void;
  /** `waiting` returns the number of waiting keys, at each scrape. */
  watch(waiting: () => number): void;
}

const KEYS_BUCKETS = [1, 2, 5, 10, 20, 50, 100];

/** Makes the metrics of the batcher before each upstream. */
export function createBatchMetrics(registry: Registry): (upstream: "social" | "chain") => BatchMetrics {
  const queues = new Map<string, () => number>();
  const sizes = new Histogram({
    name: "tributary_batch_keys",
    help: "Accounts asked for in one batch.",
    labelNames: ["upstream"],
    buckets: KEYS_BUCKETS,
    registers: [registry],
  });
  new Gauge({
    name: "tributary_queue_length",
    help: "Accounts that wait to be asked for. Beyond SOCIAL_QUEUE_MAX those of the social network are refused.",
    labelNames: ["upstream"],
    registers: [registry],
    collect() {
      for (const [upstream, waiting] of queues) this.set({ upstream }, waiting());
    },
  });
  return (upstream) => ({
    sent: (keys) => {
      sizes.observe({ upstream }, keys);
    },
    watch: (waiting) => queues.set(upstream, waiting),
  });
}
