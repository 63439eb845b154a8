import { LRUCache } from "lru-cache";

/** LRUCache's `max` would allocate memory for all entries at once: several MB, and milliseconds, for each cache. */
export function createLruCache<Key extends string, Value extends object | string | number | boolean>(
  maxEntries: number,
  options: Pick<LRUCache.OptionsBase<Key, Value, undefined>, "ttl" | "perf" | "memoMethod"> = {},
): LRUCache<Key, Value, undefined> {
  return new LRUCache<Key, Value, undefined>({ maxSize: maxEntries, sizeCalculation: () => 1, ...options });
}
