import { LRUCache } from "lru-cache";

/**
 * A cache of at most `maxEntries`, which drops the least recently used ones. With LRUCache's `max` it would allocate
 * memory for all of them at once: several MB, and milliseconds, for each cache.
 */
export function createLruCache<Key extends string, Value extends object | string | number | boolean>(
  maxEntries: number,
  options: Pick<LRUCache.OptionsBase<Key, Value, undefined>, "ttl" | "perf" | "memoMethod"> = {},
): LRUCache<Key, Value, undefined> {
  return new LRUCache<Key, Value, undefined>({ maxSize: maxEntries, sizeCalculation: () => 1, ...options });
}
