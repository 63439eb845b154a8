import { Gauge, Histogram, type Registry } from "@prometheus-io/client";

/** The metrics of one batcher. */
export interface BatchMetrics {
  /** Records that a batch of `keys` keys is sent. */
  sent(keys: number): void;
  /** Registers a function that returns the number of waiting keys; called at each scrape. */
  watch(waiting: () => number): void;
}

const KEYS_BUCKETS = [1, 2, 5, 10, 20, 50, 100];

/** Creates the metrics of each upstream's batcher. */
export function createBatchMetrics(registry: Registry): (upstream: "social" | "chain") => BatchMetrics {
  const queues = new Map<string, () => number>();
  const sizes = new Histogram({
    name: "tributary_batch_keys",
    help: "Accounts per batch.",
    labelNames: ["upstream"],
    buckets: KEYS_BUCKETS,
    registers: [registry],
  });
  new Gauge({
    name: "tributary_queue_length",
    help: "Accounts waiting for a batch. For the social network, accounts beyond SOCIAL_QUEUE_MAX are refused.",
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
