import { LRUCache } from "lru-cache";

/** For the operator: how full a cache is. An entry may count for more than one. */
export const describeCache = ({
  calculatedSize,
  maxSize,
}: Pick<LRUCache<string, object>, "calculatedSize" | "maxSize">) => ({
  size: calculatedSize,
  most: maxSize,
});

/**
 * Limits entries by `maxSize`: with LRUCache's `max`, each cache would at once allocate several MB
 * for all entries. An entry counts as one, unless `sizeCalculation` says otherwise.
 */
export function createLruCache<
  Key extends string,
  Value extends object | string | number | boolean,
>(
  maxEntries: number,
  options: Pick<
    LRUCache.OptionsBase<Key, Value, undefined>,
    "ttl" | "memoMethod" | "sizeCalculation"
  > = {},
): LRUCache<Key, Value, undefined> {
  return new LRUCache<Key, Value, undefined>({
    maxSize: maxEntries,
    sizeCalculation: () => 1,
    // The default is the clock at the import of the package, which no test can replace.
    perf: performance,
    ...options,
  });
}
