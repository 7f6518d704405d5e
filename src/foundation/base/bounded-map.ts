/** A map of limited size: an entry that is set becomes the newest, and in a full map the oldest gives way. */
export class BoundedMap<K, V> extends Map<K, V> {
  constructor(private readonly sizeMax: number) {
    super();
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    // The first key is looked for only in a full map: that is slow behind keys that were deleted.
    if (this.size <= this.sizeMax) return this;
    const [oldest] = this.keys();
    if (oldest !== undefined) this.delete(oldest);
    return this;
  }
}

/**
 * Caches what a pure function returns for texts, at most `sizeMax` results: a full cache is emptied, because what is frequent is soon
 * there again.
 */
export const cached = <K extends string, V>(sizeMax: number, compute: (key: K) => V): ((key: K) => V) => {
  const results = new Map<K, V>();
  return (key) => {
    const known = results.get(key);
    if (known !== undefined || results.has(key)) return known as V;
    const result = compute(key);
    if (results.size >= sizeMax) results.clear();
    results.set(key, result);
    return result;
  };
};
